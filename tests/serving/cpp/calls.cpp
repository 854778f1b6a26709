// calls BUNDLE LIBRARY PRECISION
//
// Makes the calls that lines of standard input name, and prints what each gives, or the error.
//
//     ["open"], ["open", "FILE of a state"], ["open", 3]   a stream, or streams
//     ["push", frames], ["push", [frames or null, ...]]    answers; in a frame null stands for NaN
//     ["save", "FILE"], ["save", "FILE", 2]                the state, or that of a stream
//     ["replace", 2], ["replace", 2, "FILE"], ["end"]
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "streams.h"

namespace {

using Json = nlohmann::ordered_json;

std::string Content(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Frames, and the numbers that they point to.
struct Given {
  std::vector<float> numbers;
  std::size_t count, width;

  Given(const Json& frames, std::size_t width) : count(frames.size()), width(width) {
    for (const Json& frame : frames) {
      this->width = frame.size();
      for (const Json& number : frame) {
        numbers.push_back(number.is_null() ? NAN : number.get<double>());
      }
    }
  }

  seqkeras::Frames frames() const { return {numbers.data(), count, width}; }
};

Json Content(const seqkeras::FrameAnswers& answers) {
  Json content = Json::array();
  for (const auto& answer : answers) {
    content.push_back(answer ? Json::parse(seqkeras::AsJson(*answer)) : Json());
  }
  return content;
}

struct Caller {
  const seqkeras::StreamingModel& model;
  std::optional<seqkeras::Stream> stream;
  std::optional<seqkeras::Streams> streams;

  Json Call(const Json& call) {
    const std::string name = call.at(0);
    if (name == "open") {
      if (call.size() == 1) stream.emplace(model.open());
      else if (call[1].is_string()) stream.emplace(model.open(Content(call[1].get<std::string>())));
      else streams.emplace(model.open(call[1].get<std::size_t>()));
      return {model.delay(), model.warm_up()};
    }
    if (name == "push") return streams ? PushAll(call.at(1)) : Push(call.at(1));
    if (name == "save") {
      std::ofstream file(call.at(1).get<std::string>(), std::ios::binary);
      file << (streams ? streams->state(call.at(2)) : stream->state());
    }
    if (name == "replace" && call.size() == 2) streams->replace(call.at(1));
    if (name == "replace" && call.size() == 3) streams->replace(call.at(1), Content(call.at(2)));
    if (name == "end") stream->end();
    return nullptr;
  }

  Json Push(const Json& frames) {
    return Content(stream->push(Given(frames, model.width()).frames()));
  }

  Json PushAll(const Json& of_all) {
    std::vector<Given> given;
    for (const Json& frames : of_all) given.emplace_back(frames, model.width());
    std::vector<std::optional<seqkeras::Frames>> all;
    for (std::size_t index = 0; index < of_all.size(); ++index) {
      all.emplace_back();
      if (!of_all[index].is_null()) all.back() = given[index].frames();
    }
    Json content = Json::array();
    for (const auto& answers : streams->push(all)) content.push_back(Content(answers));
    return content;
  }
};

}  // namespace

int main(int, char** values) {
  try {
    const seqkeras::StreamingModel model(values[1], values[2], 1, values[3],
                                        /*is_scaled=*/true);
    Caller caller{model, {}, {}};
    for (std::string line; std::getline(std::cin, line);) {
      try {
        std::cout << Json{{"gave", caller.Call(Json::parse(line))}} << std::endl;
      } catch (const std::invalid_argument& error) {
        std::cout << Json{{"error", error.what()}} << std::endl;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

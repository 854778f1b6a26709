// stream_loop BUNDLE LIBRARY ROUNDS FRAMES
//
// Prints the seconds of each round of FRAMES frames, pushed one by one to a stream of a Tag bundle
// ("ours"), and of a bare loop of onnxruntime over the same graph and state ("bare"), in turn.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "streams.h"

#define ORT_API_MANUAL_INIT  // a StreamingModel opens the library
#include <onnxruntime_cxx_api.h>

namespace {

constexpr int kWarmUp = 3;  // rounds that are not timed

// The graph's own loop: outputs are made once, and two sets of states change places.
struct Loop {
  Ort::Session session;
  std::vector<std::string> inputs, outputs;
  std::vector<const char*> input_names, output_names;
  std::vector<Ort::Value> given, found;

  Loop(const Ort::Env& env, const std::string& file, const Ort::SessionOptions& options)
      : session(env, file.c_str(), options) {
    Ort::AllocatorWithDefaultOptions allocator;
    const auto zeros_of = [&allocator](const Ort::TypeInfo& type) {
      const auto info = type.GetTensorTypeAndShapeInfo();
      std::vector<int64_t> shape = info.GetShape();
      for (int64_t& size : shape) size = std::abs(size);  // -1 of the batch and of the frames
      Ort::Value zeros = Ort::Value::CreateTensor(allocator, shape.data(), shape.size(),
                                                  info.GetElementType());
      std::fill_n(zeros.GetTensorMutableData<float>(),
                  zeros.GetTensorTypeAndShapeInfo().GetElementCount(), 0.0f);
      return zeros;
    };
    for (size_t index = 0; index < session.GetInputCount(); ++index) {
      inputs.push_back(session.GetInputNameAllocated(index, allocator).get());
      given.push_back(zeros_of(session.GetInputTypeInfo(index)));
    }
    for (size_t index = 0; index < session.GetOutputCount(); ++index) {
      outputs.push_back(session.GetOutputNameAllocated(index, allocator).get());
      found.push_back(zeros_of(session.GetOutputTypeInfo(index)));
    }
    for (const std::string& name : inputs) input_names.push_back(name.c_str());
    for (const std::string& name : outputs) output_names.push_back(name.c_str());
  }

  // Runs a frame; the outputs are the answers, then `next_` of each input but the frames.
  const float* Run(const float* frame, size_t width) {
    std::copy_n(frame, width, given[0].GetTensorMutableData<float>());
    session.Run({}, input_names.data(), given.data(), given.size(), output_names.data(),
                found.data(), found.size());
    for (size_t entry = 1; entry < given.size(); ++entry) std::swap(given[entry], found[entry]);
    return found[0].GetTensorData<float>();
  }
};

template <class Call>
double SecondsOf(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int, char** values) {
  const std::string bundle = values[1];
  const int rounds = std::stoi(values[3]), count = std::stoi(values[4]);
  const seqkeras::StreamingModel model(bundle, values[2], /*threads=*/1);
  seqkeras::Stream stream = model.open();
  const Ort::Env env(ORT_LOGGING_LEVEL_FATAL);
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  Loop loop(env, bundle + "/onnx/stream.onnx", options);
  const size_t width = model.width();
  const size_t num_tags = loop.found[0].GetTensorTypeAndShapeInfo().GetElementCount();
  std::vector<float> numbers(count * width);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& number : numbers) number = normal(random);

  std::vector<std::string> tags(count), bare_tags(count);
  const auto ours = [&] {
    for (int frame = 0; frame < count; ++frame) {
      const auto answers = stream.push({&numbers[frame * width], 1, width});
      tags[frame] = std::get<seqkeras::FrameTag>(*answers[0]).tag;
    }
  };
  const auto bare = [&] {
    for (int frame = 0; frame < count; ++frame) {
      const float* logits = loop.Run(&numbers[frame * width], width);
      const auto tag = std::max_element(logits, logits + num_tags) - logits;
      bare_tags[frame] = "tag " + std::to_string(tag);
    }
  };
  nlohmann::json seconds;
  for (int round = -kWarmUp; round < rounds; ++round) {
    const bool is_ours_first = round % 2;
    double of_ours = is_ours_first ? SecondsOf(ours) : 0;
    const double of_bare = SecondsOf(bare);
    if (!is_ours_first) of_ours = SecondsOf(ours);
    if (tags != bare_tags) {
      std::cerr << "the bare loop does not give the tags of ours\n";
      return 1;
    }
    if (round < 0) continue;
    seconds["ours"].push_back(of_ours);
    seconds["bare"].push_back(of_bare);
  }
  std::cout << seconds << '\n';
}

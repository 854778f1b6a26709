#include "stream_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace seqkeras {
namespace {

constexpr const char* kMagic = "seqkeras stream 1\n";
constexpr int64_t kMostFrames = int64_t(1) << 53;  // JavaScript's whole numbers end there

std::invalid_argument NotWhole(const std::string& reason) {
  return std::invalid_argument("open: state must be the bytes of a stream's state, whole; " +
                               reason + ".");
}

Memory ReadMemory(const Json& memory) {
  const Json &numbers = memory.at("numbers"), &time = memory.at("time");
  const bool are_numbers = numbers.is_null() ||
      (numbers.is_array() && std::all_of(numbers.begin(), numbers.end(), [](const Json& number) {
         return number.is_number() && std::isfinite(number.get<double>());
       }));
  if (!are_numbers || !(time.is_null() || time.is_number_integer())) {
    throw NotWhole("their memory of rows holds no numbers and time");
  }
  Memory read;
  if (!numbers.is_null()) read.numbers = numbers.get<std::vector<double>>();
  if (!time.is_null()) read.time = time.get<int64_t>();
  return read;
}

Json ContentOf(const Memory& memory) {
  return {{"numbers", memory.numbers ? Json(*memory.numbers) : Json()},
          {"time", memory.time ? Json(*memory.time) : Json()}};
}

}  // namespace

StreamState ReadState(const std::string& bytes) {
  const size_t start = std::strlen(kMagic), line_end = bytes.find('\n', start);
  if (bytes.rfind(kMagic, 0)) throw NotWhole("they do not begin as those of a state do");
  if (line_end == bytes.npos) throw NotWhole("their head has no end");
  StreamState state;
  size_t place = line_end + 1;
  try {
    const Json head = Json::parse(bytes.begin() + start, bytes.begin() + line_end);
    for (const auto& [name, form] : head.at("arrays").items()) {
      state.specs.emplace_back(Json{{"name", name}, {"dtype", form.at(0)}, {"shape", form.at(1)}},
                               0);
      state.arrays.push_back(bytes.data() + place);
      size_t size = state.specs.back().type->size;
      for (const int64_t axis : state.specs.back().shape) {
        if (axis && size > bytes.size() / axis) throw NotWhole("an array is larger than they are");
        size *= axis;
      }
      if (size > bytes.size() - place) {
        throw NotWhole("there are fewer of them than the arrays have");
      }
      place += size;
    }
    const Json &bundle = head.at("bundle"), &frames = head.at("frames");
    if (!bundle.is_string() || !frames.is_number_unsigned() || frames > kMostFrames) {
      throw NotWhole("they name no bundle, or no number of frames");
    }
    state.bundle = bundle, state.frames = frames;
    state.memory = ReadMemory(head.at("memory"));
  } catch (const Json::exception&) {
    throw NotWhole("their head is no JSON of a state");
  } catch (const Failure& error) {
    throw NotWhole(error.what());
  }
  if (place < bytes.size()) throw NotWhole("there are more of them than the arrays have");
  return state;
}

std::string BytesOf(const StreamState& state) {
  Json head = {{"bundle", state.bundle},
               {"frames", state.frames},
               {"memory", ContentOf(state.memory)},
               {"arrays", Json::object()}};
  std::string arrays;
  for (size_t entry = 0; entry < state.specs.size(); ++entry) {
    const Spec& spec = state.specs[entry];
    head["arrays"][spec.name] = Json::array({spec.type->name, spec.shape});
    arrays.append(state.arrays[entry], spec.count() * spec.type->size);
  }
  return kMagic + head.dump() + "\n" + arrays;
}

}  // namespace seqkeras

#include "stream_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace seqkeras {
namespace {

constexpr const char* kMagic = "seqkeras stream 2\n";  // then the checksum of what follows it
constexpr size_t kDigits = 8;                           // of the checksum
constexpr int64_t kMostFrames = int64_t(1) << 53;  // JavaScript's whole numbers end there

std::invalid_argument NotWhole(const std::string& reason) {
  return std::invalid_argument("open: state must be the bytes of a stream's state, whole; " +
                               reason + ".");
}

// The CRC-32 (ISO 3309) of bytes, in hexadecimal digits.
std::string Checksum(std::string_view bytes) {
  static const auto remainders = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < table.size(); ++byte) {
      uint32_t rest = byte;
      for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? (rest >> 1) ^ 0xedb88320 : rest >> 1;
      table[byte] = rest;
    }
    return table;
  }();
  uint32_t rest = 0xffffffff;
  for (const unsigned char byte : bytes) rest = remainders[(rest ^ byte) & 255] ^ (rest >> 8);
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(~rest));
  return digits;
}

Memory ReadMemory(const Json& memory) {
  const Json &numbers = memory.at("numbers"), &time = memory.at("time");
  const Json& series = memory.at("series");
  const bool are_numbers = numbers.is_null() ||
      (numbers.is_array() && std::all_of(numbers.begin(), numbers.end(), [](const Json& number) {
         return number.is_number() && std::isfinite(number.get<double>());
       }));
  if (!are_numbers || !(time.is_null() || time.is_number_integer()) ||
      !(series.is_null() || series.is_string())) {
    throw NotWhole("their memory of rows holds no numbers, time and series");
  }
  Memory read;
  if (!numbers.is_null()) read.numbers = numbers.get<std::vector<double>>();
  if (!time.is_null()) read.time = time.get<int64_t>();
  if (!series.is_null()) read.series = series.get<std::string>();
  return read;
}

Json ContentOf(const Memory& memory) {
  return {{"numbers", memory.numbers ? Json(*memory.numbers) : Json()},
          {"time", memory.time ? Json(*memory.time) : Json()},
          {"series", memory.series ? Json(*memory.series) : Json()}};
}

}  // namespace

StreamState ReadState(const std::string& bytes) {
  const size_t magic = std::strlen(kMagic), start = magic + kDigits + 1;
  if (bytes.rfind(kMagic, 0)) throw NotWhole("they do not begin as those of a state do");
  if (bytes.size() < start || bytes[start - 1] != '\n' ||
      bytes.compare(magic, kDigits, Checksum(std::string_view(bytes).substr(start)))) {
    throw NotWhole("their checksum is another one");
  }
  const size_t line_end = bytes.find('\n', start);
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
  const std::string content = head.dump() + "\n" + arrays;
  return kMagic + Checksum(content) + "\n" + content;
}

}  // namespace seqkeras

// The state of a stream, and its bytes, which Python and JavaScript read and write too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensors.h"

namespace seqkeras {

// What rows remember of those before them, as in serving/rows.py.
struct Memory {
  std::optional<std::vector<double>> numbers;  // the last one of each column of numbers
  std::optional<int64_t> time;                 // of the last row
  std::optional<std::string> series;           // of the rows
};

struct StreamState {
  std::string bundle;  // sha256 of the graph and its weights
  int64_t frames;      // so far
  Memory memory;
  std::vector<Spec> specs;
  std::vector<const char*> arrays;  // a view of the bytes of each tensor
};

// Reads a state, whose arrays stay in the bytes.
//
// Throws std::invalid_argument if the bytes are not whole.
StreamState ReadState(const std::string& bytes);

std::string BytesOf(const StreamState& state);

}  // namespace seqkeras

// Tensors of a stream's graph: what the manifest says of them, and their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle.h"

namespace seqkeras {

// A type of numbers, by its name in a manifest and in a state.
struct Type {
  const char* name;
  ONNXTensorElementDataType code;
  size_t size;
};

// A tensor of a graph, without the axes of the batch and of the frames.
struct Spec {
  std::string name;
  const Type* type;
  std::vector<int64_t> shape;

  // leading: the number of axes that are left out.
  Spec(const Json& spec, size_t leading);

  size_t count() const;
  bool is_float() const { return type->code == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
  bool operator==(const Spec& other) const {
    return name == other.name && type == other.type && shape == other.shape;
  }
};

// A tensor in onnxruntime's memory.
struct Tensor {
  size_t row_size, size;  // in bytes
  Ort::Value value{nullptr};
  char* bytes;

  // Makes a tensor of zeros.
  //
  // leading: the sizes of the batch, and of the frames if the tensor has such an axis.
  Tensor(const Spec& spec, const std::vector<int64_t>& leading);

  char* row(size_t index) { return bytes + index * row_size; }
  const char* row(size_t index) const { return bytes + index * row_size; }
};

using Tensors = std::vector<Tensor>;

Tensors ZerosOf(const std::vector<Spec>& specs, const std::vector<int64_t>& leading);

}  // namespace seqkeras

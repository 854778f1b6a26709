#include "tensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace seqkeras {
namespace {

constexpr Type kTypes[] = {
    {"float32", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4},
    {"float16", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2},
    {"float64", ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8},
    {"int64", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8},
    {"int32", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4},
    {"int8", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1},
    {"uint8", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1},
    {"bool", ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1},
};

}  // namespace

Spec::Spec(const Json& spec, size_t leading) : name(spec.at("name")) {
  type = std::find_if(std::begin(kTypes), std::end(kTypes),
                      [&spec](const Type& other) { return spec.at("dtype") == other.name; });
  const Json& axes = spec.at("shape");
  bool is_fixed = type != std::end(kTypes) && axes.size() >= leading;
  for (size_t axis = leading; is_fixed && axis < axes.size(); ++axis) {
    is_fixed = axes[axis].is_number_unsigned();
    if (is_fixed) shape.push_back(axes[axis]);
  }
  if (!is_fixed) throw Failure(name + " must have a type of numbers, and fixed sizes for a frame");
}

size_t Spec::count() const {
  return std::accumulate(shape.begin(), shape.end(), size_t(1), std::multiplies<size_t>());
}

Tensor::Tensor(const Spec& spec, const std::vector<int64_t>& leading) {
  std::vector<int64_t> shape = leading;
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  row_size = spec.count() * spec.type->size * (leading.size() > 1 ? leading[1] : 1);
  size = row_size * leading[0];
  value = Ort::Value::CreateTensor(Ort::AllocatorWithDefaultOptions(), shape.data(), shape.size(),
                                   spec.type->code);
  bytes = static_cast<char*>(value.GetTensorMutableRawData());
  std::memset(bytes, 0, size);
}

Tensors ZerosOf(const std::vector<Spec>& specs, const std::vector<int64_t>& leading) {
  Tensors tensors;
  for (const Spec& spec : specs) tensors.emplace_back(spec, leading);
  return tensors;
}

}  // namespace seqkeras

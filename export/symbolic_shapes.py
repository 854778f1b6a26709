"""The sizes of a graph's tensors as numbers and symbols, by onnxruntime's inference.

`_Inference` adds what onnxruntime's inference lacks: the batch axes of a GatherND, and the known
axes of a partly unknown shape.
"""

from collections.abc import Iterable

import onnx
from onnx import helper
from onnxruntime.tools import symbolic_shape_infer
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of an `onnx.ModelProto` that knows types and symbolic shapes of its tensors.

    A ValueError names the place of a size that can not be inferred, and the reason.
    """
    inference = _Inference(int_max=2**31 - 1, auto_merge=True, guess_output_rank=False, verbose=0)
    # onnxruntime's `infer_shapes` without its file in the working directory after a failure.
    inference._preprocess(model)
    complete = False
    while inference.run_:
        try:
            complete = inference._infer_impl()
        except Exception as error:  # sizes that it can not compare raise various errors
            named = [name for name in inference.known_vi_ if "/" in name]  # after their layers
            behind = f" behind {named[-1].partition(':')[0]}" if named else ""
            reason = str(error) or "they contradict each other"  # its assertions have no message
            raise ValueError(f"sizes{behind} can not be inferred: {reason}") from error
    inference._update_output_from_vi()
    if not complete:
        raise ValueError("symbolic shape inference does not come to an end")
    return inference.out_mp_


def without_contradicted(
    values: Iterable[onnx.ValueInfoProto], model: onnx.ModelProto
) -> list[onnx.ValueInfoProto]:
    """Return the `onnx.ValueInfoProto`s that ONNX's own inference does not contradict."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    inferred = {
        value.name: value for value in onnx.shape_inference.infer_shapes(bare).graph.value_info
    }
    return [value for value in values if _agree(value, inferred.get(value.name, value))]


def _agree(one, other):
    """Return whether two descriptions of a tensor agree wherever both are known."""
    one, other = one.type.tensor_type, other.type.tensor_type
    if one.elem_type != other.elem_type:
        return False
    if not (one.HasField("shape") and other.HasField("shape")):
        return True
    return len(one.shape.dim) == len(other.shape.dim) and all(
        a.dim_value == b.dim_value
        for a, b in zip(one.shape.dim, other.shape.dim, strict=True)
        if a.HasField("dim_value") and b.HasField("dim_value")
    )


class _Inference(SymbolicShapeInference):
    def _new_symbolic_shape(self, rank, node, out_idx=0):
        """Return new symbols for the unknown axes."""
        shape = super()._new_symbolic_shape(rank, node, out_idx)
        value = self.known_vi_[node.output[out_idx]]
        known = symbolic_shape_infer.get_shape_from_value_info(value) or []
        if len(known) != rank:
            return shape
        return [
            new if size is None or self._is_none_dim(size) else size
            for new, size in zip(shape, known, strict=True)
        ]

    def _infer_GatherND(self, node):
        """Infer data (B..., x..., rest), indices (B..., I..., K) -> (B..., I..., rest of K)."""
        data, indices = self._get_shape(node, 0), self._get_shape(node, 1)
        batch_dims = symbolic_shape_infer.get_attribute(node, "batch_dims", 0)
        sizes = indices[:-1] + data[batch_dims + indices[-1] :]
        value = self.known_vi_[node.output[0]]
        dtype = self.known_vi_[node.input[0]].type.tensor_type.elem_type
        value.CopyFrom(helper.make_tensor_value_info(node.output[0], dtype, sizes))

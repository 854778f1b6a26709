"""The sizes of a graph's tensors as numbers and symbols, by onnxruntime's inference.

`_Inference` adds what onnxruntime's inference lacks: the batch axes of a GatherND, and the known
axes of a partly unknown shape.
"""

from collections.abc import Iterable

import onnx
from onnx import helper
from onnxruntime.tools import symbolic_shape_infer
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

ROUNDS = 100  # of inference, each of which merges sizes; of usual graphs a few


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
            behind = f" after {named[-1].partition(':')[0]}" if named else ""
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
    _rounds = 0

    def _infer_impl(self, *args, **kwargs):
        """Infer sizes, anew where sizes were merged; a ValueError says that it has no end."""
        self._rounds += 1
        if self._rounds > ROUNDS:
            raise ValueError(f"{ROUNDS} rounds of inference merged sizes without end")
        return super()._infer_impl(*args, **kwargs)

    def _add_suggested_merge(self, symbols, apply=False):
        """Merge equal sizes into the first by one order: that of onnxruntime is a set's, by which a
        loop's sizes could be merged to and fro without end."""
        merged = {self.suggested_merge_.get(symbol, symbol) for symbol in symbols}
        kept, *others = sorted(merged, key=self._rank)
        if symbolic_shape_infer.is_literal(kept):
            kept = int(kept)
            if any(
                symbolic_shape_infer.is_literal(other) and int(other) != kept for other in others
            ):
                raise ValueError(f"{kept} and {others[0]} differ")
        for other in others:
            self.suggested_merge_[other] = kept
            for symbol, size in self.suggested_merge_.items():
                if size == other:
                    self.suggested_merge_[symbol] = kept
        if apply and self.auto_merge_:
            self._apply_suggested_merge()

    def _rank(self, symbol):
        """Return the place of a size: a number, a size of the inputs, a symbol, an expression."""
        return (
            not symbolic_shape_infer.is_literal(symbol),
            symbol not in self.input_symbols_,
            type(self.symbolic_dims_.get(symbol)) is not symbolic_shape_infer.sympy.Symbol,
            len(str(symbol)),
            str(symbol),
        )

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


symbolic_shape_infer.SymbolicShapeInference = _Inference  # by this name it infers subgraphs

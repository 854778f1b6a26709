"""Whether this processor multiplies 8-bit numbers without loss: docs/export.md, known limits."""

import functools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

DEPTH, WIDTH = 64, 16


@functools.cache
def overflows():
    """Whether 64 products of the largest numbers have another sum than theirs."""
    left = np.full((1, DEPTH), 255, "uint8")
    right = helper.make_tensor(
        "right",
        TensorProto.INT8,
        (DEPTH, WIDTH),
        np.full((DEPTH, WIDTH), 127, "int8").tobytes(),
        raw=True,
    )
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["left", "right"], ["sum"])],
        "product",
        [helper.make_tensor_value_info("left", TensorProto.UINT8, left.shape)],
        [helper.make_tensor_value_info("sum", TensorProto.INT32, (1, WIDTH))],
        [right],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    [found] = session.run(None, {"left": left})
    return bool((found != DEPTH * 255 * 127).any())


exact_int8 = pytest.mark.skipif(
    overflows(), reason="without VNNI sums of 8-bit products overflow 16 bits"
)

"""Rewrites on toy functions: the nodes that are left, and the same numbers."""

import numpy as np
import pytest
from keras import ops

from seqkeras.export.onnx_graphs import convert
from seqkeras.serving.manifest import TensorSpec
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats
from tests.export.running import run

ROWS = TensorSpec("x", "float32", ("batch", "length", 6))
LOGITS = TensorSpec("y", "float32", ("batch", "length", 5))
ALLOWED = np.array([False, True, True, False, True])
KERNEL, BIAS = floats(6, 5), floats(5, seed=1)


def logits(x, other, bias=BIAS):
    products = ops.matmul(x, KERNEL)
    return {"y": ops.where(ALLOWED, products if bias is None else products + bias, other)}


@pytest.mark.parametrize("bias", [BIAS, None], ids=["bias", "no bias"])
def test_logits_of_what_may_never_be_chosen_cost_a_bias(bias):
    graph = convert(lambda x: logits(x, BANNED_LOGIT, bias), [ROWS], [LOGITS], name="toy")
    assert graph.node_counts() == {"MatMul": 1, "Add": 1}
    x = floats(2, 3, 6, seed=2)
    expected = x @ KERNEL + (0 if bias is None else bias)
    close(run(graph, {"x": x})["y"], np.where(ALLOWED, expected, BANNED_LOGIT))


def test_a_small_number_in_their_place_is_no_bias():
    graph = convert(lambda x: logits(x, -1.0), [ROWS], [LOGITS], name="toy")
    assert graph.node_counts()["Where"] == 1
    x = floats(2, 3, 6, seed=2)
    close(run(graph, {"x": x})["y"], np.where(ALLOWED, x @ KERNEL + BIAS, -1))


def test_reshapes_to_equal_sizes_compute_them_once():
    def function(x):
        halves = []
        for part in (ops.tanh(x), ops.exp(x)):
            batch, length = ops.shape(part)[:2]  # of each part anew
            rows = ops.reshape(part, (batch * length, 6))
            halves.append(ops.reshape(ops.square(rows), (batch, length, 2, 3)))
        return {"y": ops.sum(halves[0] * halves[1], axis=-1)}

    outputs = [TensorSpec("y", "float32", ("batch", "length", 2))]
    graph = convert(function, [ROWS], outputs, name="toy")
    counts = graph.node_counts()
    assert (counts["Reshape"], counts["Concat"], counts["Shape"]) == (4, 1, 1)
    x = floats(2, 3, 6, seed=2)
    expected = (np.tanh(x) ** 2 * np.exp(x) ** 2).reshape(2, 3, 2, 3).sum(axis=-1)
    close(run(graph, {"x": x})["y"], expected)

"""Rewrites on toy functions: the nodes that are left, and the same numbers."""

import numpy as np
import pytest
from keras import ops

from seqkeras.serving.manifest import TensorSpec
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats
from tests.export.running import converted, run

ROWS = TensorSpec("x", "float32", ("batch", "length", 6))
ALLOWED = np.array([False, True, True, False, True])
KERNEL, BIAS = floats(6, 5), floats(5, seed=1)
X = floats(2, 3, 6, seed=2)


@pytest.mark.parametrize(
    "other, bias, counts",
    [
        (BANNED_LOGIT, BIAS, {"MatMul": 1, "Add": 1}),
        (BANNED_LOGIT, None, {"MatMul": 1, "Add": 1}),
        (-1.0, BIAS, {"MatMul": 1, "Add": 1, "Where": 1}),  # a small number is no bias
    ],
)
def test_logits_of_what_may_never_be_chosen_cost_a_bias(other, bias, counts):
    def logits(x):
        products = ops.matmul(x, KERNEL)
        return {"y": ops.where(ALLOWED, products if bias is None else products + bias, other)}

    graph = converted(logits, ROWS)
    assert graph.node_counts() == counts
    expected = X @ KERNEL + (0 if bias is None else bias)
    close(run(graph, {"x": X})["y"], np.where(ALLOWED, expected, other))


def test_reshapes_to_equal_sizes_compute_them_once():
    def function(x):
        halves = []
        for part in (ops.tanh(x), ops.exp(x)):
            batch, length = ops.shape(part)[:2]  # of each part anew
            rows = ops.reshape(part, (batch * length, 6))
            halves.append(ops.reshape(ops.square(rows), (batch, length, 2, 3)))
        return {"y": ops.sum(halves[0] * halves[1], axis=-1)}

    graph = converted(function, ROWS)
    counts = graph.node_counts()
    assert (counts["Reshape"], counts["Concat"], counts["Shape"]) == (4, 1, 1)
    expected = (np.tanh(X) ** 2 * np.exp(X) ** 2).reshape(2, 3, 2, 3).sum(axis=-1)
    close(run(graph, {"x": X})["y"], expected)

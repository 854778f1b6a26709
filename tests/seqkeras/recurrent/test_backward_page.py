"""docs/backward.md: its program has the gradients of the LSTM, and its lines are the library's."""

import re
from pathlib import Path

import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import LSTM
from tests.arrays import BACKEND, close, floats, numbers
from tests.autodiff import gradients_of
from tests.conftest import CHECKOUT

PAGE = (CHECKOUT / "docs/backward.md").read_text(encoding="utf-8")
SOURCES = [
    re.sub(r"\s+", " ", Path(CHECKOUT, path).read_text(encoding="utf-8"))
    for path in ("seqkeras/recurrent/lstm.py", "seqkeras/composites/recurrent.py")
]
LINES = [
    line.rstrip(" |").split(" | `")[1].rstrip("`")
    for line in PAGE.partition("## Why")[0].splitlines()
    if line.startswith("| ") and " | `" in line
]
T, B, D, U = 11, 3, 5, 7
# Keras's tanh computes in float32 on JAX, whatever it is given.
DTYPE, RTOL, ATOL = ("float32", 1e-4, 1e-5) if BACKEND == "jax" else ("float64", 1e-10, 1e-12)


@pytest.mark.parametrize("line", LINES)
def test_the_code_beside_a_formula_is_that_of_the_library(line):
    assert sum(source.count(line) for source in SOURCES) == 1


def test_every_formula_of_the_gates_and_the_weights_has_code():
    assert len(LINES) == 12


def program():
    exec(
        compile(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], "backward.md", "exec"),
        names := {},
    )
    return names


def values():
    """Inputs and states, weights, and what the loss multiplies the outputs by, in float64."""
    shapes = (T, B, D), (B, U), (B, U), (D, 4 * U), (U, 4 * U), (4 * U,), (T, B, U)
    *parts, out = [floats(*shape, seed=seed).astype("float64") for seed, shape in enumerate(shapes)]
    return parts, out


def by_the_page(chunk=None):
    (x, h, c, W, U, b), out = values()
    names = program()
    outputs, saved = names["forward"](x, h, c, W, U, b)
    return outputs, names["backward"](out, x, saved, W, U, chunk)


def by_the_network(chunk=T):
    """Outputs of `LSTM`'s network, chunk by chunk, and the gradients that the library derives."""
    network, (given, out) = LSTM.cell_class.network, values()

    def run(given):
        x, h, c, *weights = given
        outputs = []
        for start in range(0, T, chunk):
            part = ops.transpose(x[start : start + chunk], (1, 0, 2))
            hidden, h, c = network(part, None, [h, c], weights)
            outputs.append(ops.transpose(hidden, (1, 0, 2)))
            h, c = ops.stop_gradient(h), ops.stop_gradient(c)
        return ops.concatenate(outputs, axis=0)

    gradients = gradients_of(lambda given: ops.sum(run(given) * out), given)
    return numbers(run([ops.convert_to_tensor(each) for each in given])), gradients


@pytest.mark.parametrize("chunk", [None, 1, 3, 10])
def test_the_program_has_the_gradients_of_the_library_in_full_and_truncated(chunk):
    outputs, gradients = by_the_page(chunk)
    expected, expected_gradients = by_the_network(chunk or T)
    close(outputs, expected, rtol=RTOL, atol=ATOL)
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        close(gradient, wanted, rtol=RTOL, atol=ATOL)
    whole = by_the_page()[1]
    assert np.allclose(gradients[4], whole[4]) == (chunk is None)  # by U

import keras
import numpy as np
import pytest

from seqkeras.pretrained.assignment import (
    LINEAR,
    LINEAR_OF_HEADS,
    VECTOR,
    Link,
    Tensor,
    load_model,
)
from tests.arrays import floats, numbers

D, N, H, F = 7, 3, 5, 11


class Toy(keras.Model):
    """A kernel of heads, its bias, and a kernel that starts as random numbers."""

    def build(self, inputs_shape=None):
        self.query = self.add_weight(name="query", shape=(D, N, H))
        self.query_bias = self.add_weight(name="query_bias", shape=(N, H))
        self.output_kernel = self.add_weight(name="output_kernel", shape=(N, H, F))
        self.dropout = keras.layers.Dropout(0.1)


def toy_links(model):
    return [
        Link("q.weight", (model.query,), LINEAR),
        Link("q.bias", (model.query_bias,), VECTOR, aliases=("q.beta",)),
        Link("out.weight", (model.output_kernel,), LINEAR_OF_HEADS),
    ]


def tensors(**arrays):
    return {
        name.replace("__", "."): Tensor(each.shape, each.dtype.name, each.copy)
        for name, each in arrays.items()
    }


TOY = {"q__weight": floats(N * H, D), "q__bias": floats(N * H), "out__weight": floats(F, N * H)}


def test_all_that_differs_is_listed_in_one_error_and_nothing_is_read():
    def links(model):
        return [
            Link("q.weight", (model.query,), LINEAR),
            Link("q.bias", (model.query_bias,), VECTOR),
            Link("q.more", (model.query_bias,), VECTOR),
        ]

    def read():
        raise AssertionError("read")

    given = {
        "q.weight": Tensor((D, N * H), "float32", read),
        "q.bias": Tensor((N * H,), "int8", read),
        "steps": Tensor((), "float32", read),
        "step": Tensor((), "float32", read),
    }
    with pytest.raises(ValueError) as caught:
        load_model(Toy, links, given, "FILE", harmless=["step"])
    title, *lines = str(caught.value).splitlines()
    assert title == "Toy: FILE must hold its tensors, and no others; received 5 that differ:"
    assert lines[0].endswith("output_kernel: a weight that the name map leaves out")
    assert lines[1:] == [
        f"  q.weight: has shape ({D}, {N * H}), must have ({N * H}, {D})",
        "  q.bias: holds int8, must hold floating-point numbers",
        "  q.more: missing",
        "  steps: has no use",
    ]


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("moment", ["making", "linking", "reading"])
def test_a_failure_at_any_moment_leaves_the_next_load_alone(moment, failure):
    def fail(*_):
        raise failure

    def failing(name, works):
        return fail if moment == name else works

    given = tensors(**TOY)
    broken = given["out.weight"]
    broken = Tensor(broken.shape, broken.dtype, failing("reading", broken.read))

    def make():
        model = Toy()
        if moment == "making":
            model.build()
            fail()
        return model

    with pytest.raises(failure):
        load_model(make, failing("linking", toy_links), given | {"out.weight": broken}, "a file")
    model = load_model(Toy, toy_links, given, "a file")
    np.testing.assert_array_equal(numbers(model.query_bias).ravel(), TOY["q__bias"])
    with keras.StatelessScope():
        later = keras.Variable("ones", shape=(2,))
    np.testing.assert_array_equal(numbers(later), [1, 1])

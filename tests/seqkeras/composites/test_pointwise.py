import numpy as np
import pytest
from keras import ops

from seqkeras import composites
from tests.arrays import close, floats, needs_tensorflow, numbers
from tests.autodiff import gradients_of
from tests.references import transformer as references


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_is_the_papers_formula(approximate):
    x = np.linspace(-12, 12, 977).astype("float32")
    expected = (references.gelu_tanh if approximate else references.gelu)(x.astype("float64"))
    close(composites.gelu(x, approximate=approximate), expected, rtol=1e-6, atol=1e-6)


def test_layer_norm_is_the_papers_formula_far_from_zero():
    x, gamma, beta = 100 + floats(3, 5, 7), floats(7, seed=1), floats(7, seed=2)
    expected = references.layer_norm(x.astype("float64"), gamma, beta, 1e-5)
    close(composites.layer_norm(x, gamma, beta, epsilon=1e-5), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    x = ops.cast(np.array([[-6e4, -300.0, 1.0, 300.0, 6e4]], "float32"), dtype)
    ones, zeros = np.ones(5, "float32"), np.zeros(5, "float32")
    for function in (
        composites.gelu,
        lambda each: composites.gelu(each, approximate=True),
        lambda each: composites.layer_norm(each, ones, zeros, epsilon=1e-5),
    ):
        outputs = function(x)
        assert dtype in str(outputs.dtype)
        wide = function(ops.cast(x, "float32"))
        close(ops.cast(outputs, "float32"), wide, rtol=1e-2, atol=1e-2)
        [gradient] = gradients_of(lambda v, f=function: ops.sum(ops.cast(f(v[0]), "float32")), [x])
        assert np.all(np.isfinite(gradient.astype("float32")))


@needs_tensorflow
@pytest.mark.parametrize(
    "name, call",
    [
        ("gelu", lambda x: composites.gelu(x, approximate=True)),
        ("layer_norm", lambda x: composites.layer_norm(x, x[0, 0], x[0, 1], epsilon=1e-3)),
    ],
)
def test_a_traced_graph_holds_one_node(name, call):
    import tensorflow as tf

    x = floats(2, 3, 7)
    with composites.as_nodes([name]):
        graph = tf.function(call, autograph=False).get_concrete_function(tf.constant(x))
    calls = [each for each in graph.graph.get_operations() if each.type == "PartitionedCall"]
    assert len(calls) == 1
    close(numbers(graph(tf.constant(x))), call(x))

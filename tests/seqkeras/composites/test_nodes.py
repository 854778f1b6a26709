import json

import keras
import pytest

from seqkeras import composites
from tests.arrays import close, gradients, needs_tensorflow
from tests.catalogue import call
from tests.catalogue.recurrent import BIDIRECTIONAL_NODES, CELL_CLASSES, RECURRENT, of_each
from tests.conftest import others_long

ALL = [f"{way}{name}" for way in ("", "bidirectional_") for name in CELL_CLASSES]
*ONE_CELL, STACK = RECURRENT
BACKWARDS = of_each("{}, backwards", return_state=True, go_backwards=True)
every_layer = pytest.mark.parametrize(
    "case", [*ONE_CELL, *BACKWARDS, *BIDIRECTIONAL_NODES], ids=lambda case: case.name
)


def traced(layer, inputs, as_nodes):
    """The layer as a TensorFlow graph."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def function(**inputs):
        with composites.as_nodes(as_nodes):
            return call(layer, inputs)

    return function.get_concrete_function(**{k: tf.constant(v) for k, v in inputs.items()})


def composites_in(concrete):
    """What the function nodes of a graph say they implement."""
    library = concrete.graph.as_graph_def().library.function
    return [
        json.loads(function.attr["_implements"].s)
        for function in library
        if "_implements" in function.attr
    ]


@needs_tensorflow
@pytest.mark.parametrize("masked", others_long([True, False]), ids=["masked", "unmasked"])
@every_layer
def test_a_node_has_its_name_and_options_and_gives_what_python_gives(case, masked):
    layer, inputs = case.build(), case.inputs()
    if not masked:
        del inputs["mask"]
    graph = traced(layer, inputs, as_nodes=ALL)
    close(graph(**inputs), call(layer, inputs))
    [implements] = composites_in(graph)
    if case in BIDIRECTIONAL_NODES:
        name = layer.forward_layer.cell.network.name
        assert implements == {"composite": f"bidirectional_{name}"}
    else:
        name = layer.cell.network.name
        assert implements == {"composite": name, "reverse": case in BACKWARDS}


@needs_tensorflow
def test_each_cell_of_a_stack_is_a_node():
    graph = traced(STACK.build(), STACK.inputs(), as_nodes=ALL)
    assert {each["composite"] for each in composites_in(graph)} == {"lstm", "simple_rnn", "gru"}
    close(graph(**STACK.inputs()), call(STACK.build(), STACK.inputs()))


@needs_tensorflow
def test_a_composite_stays_ordinary_keras_unless_it_is_named_within_the_block():
    case = RECURRENT[0]
    layer, inputs = case.build(), case.inputs()
    with pytest.raises(KeyError), composites.as_nodes(ALL):
        raise KeyError
    others = [name for name in ALL if name != layer.cell.network.name]
    for names in ((), others):
        assert composites_in(traced(layer, inputs, as_nodes=names)) == []


@needs_tensorflow
@pytest.mark.parametrize("case", ONE_CELL, ids=lambda case: case.name)
def test_a_node_keeps_the_gradients(case):
    layer, inputs = case.build(), case.inputs()

    def loss(each):
        outputs, *states = call(each, inputs)
        return keras.ops.sum(outputs**2) + sum(keras.ops.sum(state) for state in states)

    expected = gradients(layer, loss)
    with composites.as_nodes(ALL):
        close(gradients(layer, loss), expected, rtol=1e-4, atol=1e-5)

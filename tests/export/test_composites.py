import dataclasses
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis.extra import numpy as extra_numpy
from onnx import TensorProto

from seqkeras.export.composites.layouts import LAYOUTS
from seqkeras.export.onnx_graphs import convert
from seqkeras.export.quantize import quantize
from seqkeras.recurrent import LSTM, Bidirectional, SimpleRNN
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import close, floats, randomize, right_padded
from tests.catalogue.recurrent import CELL_CLASSES
from tests.export.running import converted, require_agreement, run

B, T, D, U = 5, 7, 3, 11
SCANS = {"simple_rnn"}  # names of networks with a lowering in `export.composites.scans`
AS_LOOPS = set()  # names of networks for which ONNX has no operator
MASK = right_padded([7, 2, 0, 1, 5], T)
every_network = pytest.mark.parametrize(
    "cell, direction",
    list(itertools.product(CELL_CLASSES, ["forward", "reverse", "bidirectional"])),
)


class Network:
    """A recurrent composite with weights of its own: tensors by name in, tensors by name out."""

    def __init__(self, cell, direction):
        self.network, self.direction = CELL_CLASSES[cell].network, direction
        gates, self.num_states = (
            len(each) for each in (self.network.masked_gates, self.network.masked_copies)
        )
        self.sides = 2 if direction == "bidirectional" else 1
        bias = (*CELL_CLASSES[cell].bias_rows, gates * U)
        shapes = [(D, gates * U), (U, gates * U), bias]
        self.weights = [
            [tf.Variable(0.5 * floats(*shape, seed=side)) for shape in shapes]
            for side in range(self.sides)
        ]
        self.state_names = [f"state_{index}" for index in range(self.sides * self.num_states)]

    def __call__(self, sequence, mask=None, **states):
        states = [states[name] for name in self.state_names]
        if self.sides == 1:
            reverse = self.direction == "reverse"
            results = self.network(sequence, mask, states, self.weights[0], reverse=reverse)
        else:
            forward = states[: self.num_states], self.weights[0]
            backward = states[self.num_states :], self.weights[1]
            results = self.network.bidirectional(sequence, mask, *forward, *backward)
        names = ["outputs", *(f"final_{name}" for name in self.state_names)]
        return dict(zip(names, results, strict=True))

    def inputs(self):
        states = {name: floats(B, U, seed=seed) for seed, name in enumerate(self.state_names)}
        return {"sequence": floats(B, T, D), **states}

    def input_specs(self, masked=True):
        return [
            TensorSpec("sequence", "float32", ("batch", "length", D)),
            *([TensorSpec("mask", "bool", ("batch", "length"))] if masked else []),
            *(TensorSpec(name, "float32", ("batch", U)) for name in self.state_names),
        ]

    def output_specs(self):
        return [
            TensorSpec("outputs", "float32", ("batch", "length", self.sides * U)),
            *(TensorSpec(f"final_{name}", "float32", ("batch", U)) for name in self.state_names),
        ]


@functools.cache
def exported(cell, direction, masked=True):
    """A network and its ONNX graph."""
    network = Network(cell, direction)
    specs = network.input_specs(masked), network.output_specs()
    return network, convert(network, *specs, name="network")


@every_network
def test_a_composite_becomes_one_native_node_that_agrees_at_any_size(cell, direction):
    if cell in AS_LOOPS | SCANS:
        pytest.skip("it becomes no native node")
    if cell not in LAYOUTS:
        pytest.fail(
            f"{CELL_CLASSES[cell].__name__}: its network {cell!r} has no Layout, so it leaves as a "
            f"loop. Add an entry {cell!r} to LAYOUTS in export/composites/layouts.py, as "
            f"docs/cells.md shows; if ONNX has no operator for it, add {cell!r} to AS_LOOPS here."
        )
    network, graph = exported(cell, direction)
    operator = LAYOUTS[cell].operator
    [node] = [each for each in graph.nodes if each.op_type in ("RNN", "LSTM", "GRU")]
    [attribute] = [each for each in node.attribute if each.name == "direction"]
    assert (node.op_type, attribute.s.decode()) == (operator, direction)
    assert not {"Loop", "Scan"} & set(graph.node_counts())
    require_agreement_at_any_size(network, graph)


def require_agreement_at_any_size(network, graph):
    inputs = network.inputs()
    require_agreement(graph, network, inputs | {"mask": MASK})
    inputs = {name: value[:1] for name, value in inputs.items()}
    inputs["sequence"] = inputs["sequence"][:, :1]
    require_agreement(graph, network, inputs | {"mask": np.ones((1, 1), bool)})


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "whole"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_simple_network_becomes_a_product_and_a_tanh_a_step(direction, masked):
    network, graph = exported("simple_rnn", direction, masked)
    counts = graph.node_counts()
    assert {counts[name] for name in ("MatMul", "Scan", "Gemm", "Tanh")} == {network.sides}
    assert not {"Loop", "RNN", "LSTM"} & set(counts)
    if masked:
        require_agreement_at_any_size(network, graph)
    else:
        require_agreement(graph, network, network.inputs())


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_one_step_of_a_simple_network_needs_no_loop(direction):
    network = Network("simple_rnn", direction)
    sequence, *states = network.input_specs(masked=False)
    sequence = dataclasses.replace(sequence, shape=("batch", 1, D))
    outputs, *finals = network.output_specs()
    outputs = dataclasses.replace(outputs, shape=("batch", 1, network.sides * U))
    graph = convert(network, [sequence, *states], [outputs, *finals], name="network")
    assert "Scan" not in graph.node_counts()
    inputs = network.inputs()
    require_agreement(graph, network, inputs | {"sequence": inputs["sequence"][:, :1]})


@pytest.mark.parametrize(
    "cell, direction", [("lstm", "forward"), ("lstm", "bidirectional"), ("gru", "reverse")]
)
def test_a_graph_without_a_mask_agrees_with_keras(cell, direction):
    network, graph = exported(cell, direction, masked=False)
    assert "Cast" not in graph.node_counts()
    require_agreement(graph, network, network.inputs())


@given(mask=extra_numpy.arrays(bool, (B, T)))
@example(mask=np.zeros((B, T), bool))
@example(mask=MASK[:, ::-1])
@settings(max_examples=8, deadline=None)
@every_network
def test_the_graph_agrees_with_keras_on_a_mask_with_gaps(cell, direction, mask):
    network, graph = exported(cell, direction)
    require_agreement(graph, network, network.inputs() | {"mask": mask})


@pytest.mark.parametrize("cell", ["simple_rnn", "lstm"])
def test_masked_steps_may_hold_anything(cell):
    network, graph = exported(cell, "bidirectional")
    inputs = network.inputs() | {"mask": ~MASK}
    expected = run(graph, inputs)
    inputs["sequence"] = np.where(MASK[..., None], np.float32("nan"), inputs["sequence"])
    close(run(graph, inputs), expected)


@pytest.mark.parametrize(
    "cell, direction, kept",
    [
        ("simple_rnn", "reverse", ["outputs"]),
        ("lstm", "forward", ["final_state_1"]),
        ("gru", "bidirectional", ["final_state_1", "outputs"]),
    ],
)
def test_an_output_that_nobody_uses_may_be_missing(cell, direction, kept):
    network = Network(cell, direction)

    def function(**inputs):
        results = network(**inputs)
        return {name: results[name] for name in kept}

    graph = converted(function, *network.input_specs())
    operator = "Scan" if cell in SCANS else LAYOUTS[cell].operator
    assert graph.node_counts()[operator] == 1
    require_agreement(graph, function, network.inputs() | {"mask": MASK})


@pytest.mark.parametrize("place, name", [(0, "kernel"), (1, "recurrent_kernel"), (2, "bias")])
def test_a_computed_weight_is_refused(place, name):
    network = Network("gru", "bidirectional")
    weights = network.weights[-1]
    variable = weights[place]

    def function(**inputs):
        weights[place] = variable * tf.reduce_mean(inputs["sequence"])
        return network(**inputs)

    message = f": {name} must be a weight of the model .* fused ONNX node; received a computed ten"
    with pytest.raises(ValueError, match=message):
        convert(function, network.input_specs(), network.output_specs(), "network")


@pytest.mark.parametrize(("precision", "most"), [("float16", 2e-3), ("int8", 0.05)])
@pytest.mark.parametrize("layer_class", [LSTM, SimpleRNN])
def test_gaps_are_right_in_other_precisions(layer_class, precision, most):
    features, units = 29, 31  # smaller weights stay in float32
    layer = Bidirectional(layer_class(units, return_sequences=True))
    layer.build((None, None, features))
    layer.set_weights([0.3 * weight for weight in randomize(layer).get_weights()])

    def function(sequence, mask):
        return {"y": layer(sequence, mask=mask)}

    specs = [
        TensorSpec("sequence", "float32", ("batch", "length", features)),
        TensorSpec("mask", "bool", ("batch", "length")),
    ]
    graph = converted(function, *specs)
    made = quantize({"model": graph}, precision)["model"]
    inputs = {"sequence": floats(B, T, features), "mask": ~MASK}
    expected = run(graph, inputs)["y"]
    assert 0 < np.abs(run(made, inputs)["y"] - expected).max() < most
    kinds = {
        attribute.g.output[0].type.tensor_type.elem_type
        for node in made.nodes
        if node.op_type == "If"
        for attribute in node.attribute
    }
    assert kinds == {TensorProto.FLOAT16 if precision == "float16" else TensorProto.FLOAT}

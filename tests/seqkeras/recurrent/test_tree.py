import re

import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import TreeLSTM, TreeRNN
from tests.agreement import assert_gradients_agree, assert_outputs_agree
from tests.arrays import close, floats, needs_tensorflow, numbers, randomize
from tests.catalogue.trees import ANY, BINARY, layer_inputs
from tests.references import tree as references

PAPERS = {
    "rnn": (lambda: TreeRNN(11, return_state=True), references.tree_rnn, BINARY),
    "binary": (
        lambda: TreeLSTM(11, "binary", return_state=True),
        references.binary_tree_lstm,
        BINARY,
    ),
    "child-sum": (lambda: TreeLSTM(11, return_state=True), references.child_sum_tree_lstm, ANY),
}
every_paper = pytest.mark.parametrize("make, reference, texts", PAPERS.values(), ids=PAPERS)


def inputs_of(texts):
    inputs = layer_inputs(texts)()
    return {name: inputs[name] for name in ("features", "children", "levels")}


@every_paper
def test_states_are_the_papers_formula_node_by_node(make, reference, texts):
    assert_outputs_agree(make, inputs_of(texts), reference)


@every_paper
def test_gradients_are_those_of_the_papers_formula(make, reference, texts):
    assert_gradients_agree(make, inputs_of(texts), reference)


def test_a_tree_of_one_leaf_is_a_cell_without_children():
    inputs = {
        "features": floats(1, 1, 7),
        "children": np.full((1, 1, 2), -1),
        "levels": np.full((1, 0, 1), -1),
    }
    layer = TreeLSTM(11)
    layer(**inputs)
    randomize(layer)
    i, _, g, o = ops.split(ops.matmul(inputs["features"], layer.kernel) + layer.bias, 4, axis=-1)
    c = ops.sigmoid(i) * ops.tanh(g)
    close(layer(**inputs), ops.sigmoid(o) * ops.tanh(c))


def test_the_order_of_children_matters_to_binary_and_not_to_child_sum():
    inputs = inputs_of(BINARY)
    turned = inputs | {"children": inputs["children"][:, :, ::-1].copy()}
    for layer, same in ((TreeLSTM(11), True), (TreeLSTM(11, "binary"), False)):
        layer(**inputs)
        randomize(layer)
        before, after = numbers(layer(**inputs)), numbers(layer(**turned))
        assert np.allclose(before, after, atol=1e-6) is same


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: TreeLSTM(3, "ternary"), r"TreeLSTM: kind must be one of .*; received 'ternary'"),
        (lambda: TreeRNN(0), "TreeRNN: units must be a positive integer; received 0"),
        (
            lambda: TreeLSTM(3, "binary")(**inputs_of(ANY)),
            r"children must have shape \(batch, nodes, 2\).*received 3 children",
        ),
        (
            lambda: TreeRNN(3)(**inputs_of(ANY) | {"features": floats(2, 7)}),
            r"TreeRNN: features must have shape \(batch, length, dim\); received \(2, 7\)",
        ),
    ],
)
def test_what_can_not_be_a_recursive_layer_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "name, axes", [("children", "(batch, nodes, children)"), ("levels", "(batch, heights, nodes)")]
)
@pytest.mark.parametrize("layer_class", [TreeRNN, TreeLSTM])
def test_places_that_are_not_of_rank_3_are_refused(layer_class, name, axes):
    inputs = inputs_of(BINARY)
    inputs[name] = inputs[name][0]
    message = f"{layer_class.__name__}: {name} must have shape {axes}; received "
    with pytest.raises(ValueError, match=re.escape(message + f"{inputs[name].shape}.")):
        layer_class(11)(**inputs)


@pytest.mark.parametrize("name", ["children", "levels"])
@pytest.mark.parametrize("layer_class", [TreeRNN, TreeLSTM])
def test_places_beyond_the_row_are_refused(layer_class, name):
    inputs = inputs_of(BINARY)
    length = inputs["features"].shape[1]
    for wrong in (-2, length):
        places = inputs[name].copy()
        places[0, -1, -1] = wrong
        message = f"{name} must be places in a row, from 0 to {length - 1}, or -1; .*d {wrong}"
        with pytest.raises(ValueError, match=message):
            layer_class(11)(**inputs | {name: places})


@pytest.mark.parametrize("kind", ["tree_rnn", "binary"])
def test_a_batch_of_fewer_children_is_as_one_whose_places_are_empty(kind):
    layer = TreeRNN(5) if kind == "tree_rnn" else TreeLSTM(5, kind="binary")
    features, levels = floats(1, 3, 7), np.array([[[0, -1], [-1, -1]]])
    alone, padded = np.full((1, 3, 1), -1), np.full((1, 3, 2), -1)
    alone[0, 0, 0] = padded[0, 0, 0] = 2
    layer.build(features.shape, padded.shape, levels.shape)
    randomize(layer)
    close(layer(features, alone, levels), layer(features, padded, levels))
    with pytest.raises(ValueError, match=r"children must have shape \(batch, nodes, 2\), or fewer"):
        layer(features, np.full((1, 3, 3), -1), levels)


@needs_tensorflow
def test_a_layer_says_that_xla_can_not_compile_its_loop():
    assert not TreeRNN(5).supports_jit

import numpy as np
import pytest

from seqkeras.recurrent import TreeLSTM, TreeRNN
from tests.arrays import close, floats, needs_tensorflow, randomize
from tests.catalogue.trees import ANY, BINARY, layer_inputs
from tests.complex_step import assert_is_the_formula
from tests.references import tree as references
from tests.refusals import refusals

PAPERS = {
    "rnn": (lambda: TreeRNN(11, return_state=True), references.tree_rnn, BINARY),
    "binary": (
        lambda: TreeLSTM(11, "binary", return_state=True),
        references.binary_tree_lstm,
        BINARY,
    ),
    "child-sum": (lambda: TreeLSTM(11, return_state=True), references.child_sum_tree_lstm, ANY),
}


def inputs_of(texts):
    inputs = layer_inputs(texts)()
    return {name: inputs[name] for name in ("features", "children", "levels")}


@pytest.mark.parametrize("make, reference, texts", PAPERS.values(), ids=PAPERS)
def test_states_and_gradients_are_the_papers_formula_node_by_node(make, reference, texts):
    assert_is_the_formula(make, inputs_of(texts), reference)


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


def called(layer, texts=BINARY, **changes):
    return lambda: layer(**inputs_of(texts) | changes)


def beyond(name, place):
    places = inputs_of(BINARY)[name].copy()
    places[0, -1, -1] = place
    return {name: places}


test_what_can_not_be_a_recursive_layer_is_refused = refusals(
    (lambda: TreeLSTM(3, "ternary"), "TreeLSTM: kind must be one of ...; received 'ternary'"),
    (called(TreeLSTM(3, "binary"), ANY), "children must have shape (batch, nodes, 2)...received 3"),
    (called(TreeRNN(3), ANY, features=floats(2, 7)), "TreeRNN: features must have shape (batch, l"),
    *(
        case
        for layer in (TreeRNN, TreeLSTM)
        for case in (
            (
                called(layer(11), children=inputs_of(BINARY)["children"][0]),
                f"{layer.__name__}: children must have shape (batch, nodes, children); received (",
            ),
            (
                called(layer(11), levels=inputs_of(BINARY)["levels"][0]),
                f"{layer.__name__}: levels must have shape (batch, heights, nodes); received (",
            ),
            (
                called(layer(11), **beyond("children", -2)),
                "children must be places in a row, from 0 to 6, or -1; ...d -2",
            ),
            (
                called(layer(11), **beyond("levels", 7)),
                "levels must be places in a row, from 0 to 6, or -1; ...d 7",
            ),
        )
    ),
)

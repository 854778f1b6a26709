import random

import keras
import numpy as np
import pytest

from seqkeras.data.trees import Tree, tree_arrays
from seqkeras.models import TreeClassifier
from tests.agreement import DTYPES
from tests.arrays import close, needs_tensorflow
from tests.catalogue import trees
from tests.complex_step import assert_equals_loops
from tests.references.tree import tree_classifier
from tests.seqkeras.models.support import compiled, losses_by_heart

IDS = {"0": 2, "1": 3, "and": 4, "or": 5}
CASES = [case for case in trees.CASES if case.name.startswith("TreeClassifier")]
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)


def model_of(cell, units=17, num_children=2):
    return TreeClassifier(7, 11, units, num_classes=2, cell=cell, num_children=num_children)


def expressions(count, depth, seed):
    """Trees of `(left (operator right))`, each node labelled with its truth value."""
    draw = random.Random(seed)

    def expression(depth):
        if depth == 0 or draw.random() < 0.2:
            bit = draw.randrange(2)
            return Tree(bit, word=str(bit))
        left, right = expression(depth - 1), expression(depth - 1)
        name = draw.choice(["and", "or"])
        value = (left.label & right.label) if name == "and" else (left.label | right.label)
        return Tree(value, (left, Tree(right.label, (Tree(0, word=name), right))))

    return [expression(depth) for _ in range(count)]


def examples(trees):
    arrays = tree_arrays(trees, IDS)
    return arrays, arrays.pop("labels")


def weights_of(model):
    """The model's weights as the reference names them."""
    return {
        "embeddings": model.embedding.embeddings,
        "layer": model.encoder.weights,
        "output": model.output_layer.weights,
    }


def expected_logits(model, weights, inputs):
    given = {name: inputs[name] for name in ("token_ids", "lengths", "children")}
    return tree_classifier(**given, cell=model.cell_name, **weights)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_gradients_are_the_papers_formula_node_by_node(case, dtype):
    assert_equals_loops(case.build, dtype, case.inputs(), weights_of, expected_logits)


@pytest.mark.long
@needs_tensorflow
@pytest.mark.parametrize("cell", ["tree_rnn", "child_sum", "binary"])
def test_a_batch_is_learnt_by_heart(cell):
    inputs, labels = examples(expressions(7, depth=3, seed=1))
    first, last = losses_by_heart(model_of(cell), inputs, labels, LOSS, 80, 0.02)
    assert first > 0.3 and last < 0.01


@pytest.mark.long
@needs_tensorflow
def test_a_tree_lstm_learns_to_evaluate_expressions_it_has_not_seen():
    keras.utils.set_random_seed(2)
    inputs, labels = examples(expressions(512, depth=4, seed=3))
    model = compiled(model_of("binary"), inputs, LOSS, 0.01)
    model.fit(inputs, labels, batch_size=64, epochs=12, verbose=0)
    inputs, labels = examples(expressions(200, depth=6, seed=4))
    right = model.predict(inputs, verbose=0)[:, 0].argmax(axis=-1) == labels[:, 0]
    assert right.mean() > 0.97


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cell": "gru"}, "TreeClassifier: cell must be one of .*; received 'gru'"),
        ({"units": 0}, "TreeClassifier: units must be a positive integer; received 0"),
    ],
)
def test_what_can_not_be_a_classifier_is_refused(options, message):
    sizes = {"vocab_size": 7, "embedding_dim": 5, "units": 3, "num_classes": 2}
    with pytest.raises(ValueError, match=message):
        TreeClassifier(**sizes | options)


def test_padding_does_not_count_in_the_loss():
    inputs, labels = examples(expressions(3, depth=2, seed=5))
    model = model_of("binary")
    alone = LOSS(labels, model(inputs))
    longer = inputs | {
        name: np.pad(inputs[name], [(0, 0), (0, 4), *[(0, 0)] * (inputs[name].ndim - 2)])
        for name in ("token_ids", "children")
    }
    padded = np.pad(labels, [(0, 0), (0, 4)], constant_values=-1)
    close(LOSS(padded, model(longer)), alone)

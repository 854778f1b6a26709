"""What a recurrent model can not read is refused by name, as the other models do."""

import keras
import numpy as np
import pytest

from seqkeras.models import BiDAF, BiLM, Forecaster, RNNLanguageModel, RNNSeq2Seq, TreeClassifier
from tests.arrays import close
from tests.catalogue import call, models, seq2seq, trees

CASES = {
    case.layer_class: case
    for case in (*seq2seq.CASES, *models.CASES, *trees.CASES)
    if issubclass(case.layer_class, keras.Model)
}
REQUIRED = {
    RNNSeq2Seq: ["token_ids", "lengths", "target_ids"],
    RNNLanguageModel: ["token_ids"],
    BiDAF: [
        f"{side}_{part}"
        for side in ("context", "query")
        for part in ("ids", "characters", "lengths")
    ],
    BiLM: ["character_ids"],
    Forecaster: ["window"],
    TreeClassifier: ["token_ids", "lengths", "children", "levels"],
}
every_model = pytest.mark.parametrize("kind", REQUIRED, ids=lambda kind: kind.__name__)


def test_every_recurrent_model_is_here():
    assert set(CASES) == set(REQUIRED)


@every_model
def test_an_input_that_is_missing_is_named(kind):
    case = CASES[kind]
    layers = case.make(), case.built()
    for name in REQUIRED[kind]:
        rest = {key: each for key, each in case.inputs().items() if key != name}
        message = rf"{kind.__name__}: inputs must hold \['{name}'\]; received "
        for layer in layers:
            with pytest.raises(ValueError, match=message):
                layer(rest)


@every_model
def test_an_input_that_nobody_reads_is_named(kind):
    case = CASES[kind]
    message = rf"{kind.__name__}: .*inputs must be among .*; received \['padding_mask'\], which"
    with pytest.raises(ValueError, match=message):
        case.built()(case.inputs() | {"padding_mask": np.ones((2, 5), bool)})


@every_model
def test_an_array_in_place_of_the_dictionary_is_refused(kind):
    case = CASES[kind]
    array = case.inputs()[REQUIRED[kind][0]]
    for layer in (case.make(), case.built()):
        with pytest.raises(ValueError, match=f"{kind.__name__}: inputs must be a dictionary of "):
            layer(array)


@pytest.mark.parametrize("kind", [RNNSeq2Seq, RNNLanguageModel, TreeClassifier])
def test_a_mask_in_place_of_lengths_is_refused(kind):
    case = CASES[kind]
    shape = case.inputs()["token_ids"].shape
    message = rf"{kind.__name__}: .*lengths must have shape \(batch\), .* received .*{shape[1]}\)"
    with pytest.raises(ValueError, match=message):
        case.built()(case.inputs() | {"lengths": np.ones(shape, bool)})


def test_the_labels_of_a_batch_of_trees_may_come_along():
    case = CASES[TreeClassifier]
    labels = np.zeros(case.inputs()["token_ids"].shape, int)
    expected = call(case.built(), case.inputs())
    close(call(case.built(), case.inputs() | {"labels": labels}), expected)

import numpy as np
import pytest
from keras import ops

from seqkeras.models import BiDAF
from seqkeras.values import BANNED_LOGIT
from tests.agreement import DTYPES
from tests.arrays import close, numbers, right_padded
from tests.catalogue import models
from tests.catalogue.case import S
from tests.complex_step import assert_equals_loops
from tests.references.bidaf import bidaf
from tests.refusals import refusals

[CASE] = models.BIDAF


def weights_of(model):
    """The model's weights as the reference names them."""

    def halves(layer):
        return layer.forward_layer.weights, layer.backward_layer.weights

    return {
        "words": model.word_embedding.weights[0],
        "characters": model.character_cnn.weights,
        "highways": [(each.transform.weights, each.gate.weights) for each in model.highways],
        "contextual": halves(model.contextual),
        "similarity": model.attention_flow.weights[0],
        "modelling": [halves(layer) for layer in model.modelling],
        "end_modelling": halves(model.end_modelling),
        "start": model.start_layer.weights,
        "end": model.end_layer.weights,
    }


def real_logits(model, inputs):
    """Zero behind the context's end."""
    real = right_padded(inputs["context_lengths"], S)
    return {name: ops.where(real, each, 0) for name, each in model(inputs).items()}


def expected_logits(model, weights, inputs):
    """Of each row without its padding, and then zeros."""

    def words(side, row):
        length = inputs[f"{side}_lengths"][row]
        return inputs[f"{side}_ids"][row, :length], inputs[f"{side}_characters"][row, :length]

    logits = {"start_logits": [], "end_logits": []}
    for row, length in enumerate(inputs["context_lengths"]):
        found = bidaf(words("context", row), words("query", row), weights)
        for rows, each in zip(logits.values(), found, strict=True):
            rows.append(np.pad(each, (0, S - length)))
    return {name: np.array(rows) for name, rows in logits.items()}


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_gradients_are_the_papers_six_layers(dtype):
    assert_equals_loops(
        CASE.build, dtype, CASE.inputs(), weights_of, expected_logits, call=real_logits
    )


def test_no_answer_lies_behind_the_contexts_end():
    real = right_padded(models.LENGTHS, S)
    for logits in numbers(CASE.built()(CASE.inputs())).values():
        assert np.all(logits[~real] == BANNED_LOGIT)
        assert np.all(logits[real] > BANNED_LOGIT)


@pytest.mark.parametrize("side", ["context", "query"])
def test_an_empty_side_gives_numbers(side):
    model, inputs = CASE.built(), CASE.inputs()
    whole = numbers(model(inputs))
    lengths = np.array(inputs[f"{side}_lengths"])
    lengths[1] = 0
    for name, logits in numbers(model(inputs | {f"{side}_lengths": lengths})).items():
        assert np.all(np.isfinite(logits))
        close(logits[0], whole[name][0])


def test_dropout_drops_in_training_only():
    model, inputs = CASE.build(), CASE.inputs()
    whole = numbers(model(inputs))
    close(whole, numbers(model(inputs, training=False)))
    for name, logits in numbers(model(inputs, training=True)).items():
        assert np.abs(logits - whole[name]).max() > 0.01


test_a_negative_number_of_highways_is_refused = refusals(
    (
        lambda: BiDAF(19, 13, 17, 5, 11, 3, num_highways=-1),
        "num_highways must be ... 0; received -1.",
    )
)

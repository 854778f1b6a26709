"""Every model gives the attention of each head of each layer in one way."""

import numpy as np
import pytest
from keras import ops

from seqkeras.attention import LocalAttention
from seqkeras.models import Bert, RNNLanguageModel
from tests import references
from tests.agreement import weights_of
from tests.arrays import close, numbers, randomize, right_padded
from tests.catalogue import models, options_long, seq2seq, transformer_models
from tests.catalogue.case import B
from tests.conftest import others_long

ATTENDING = [
    *transformer_models.GPTS,
    *transformer_models.MASKED_GPTS,
    *transformer_models.TRANSFORMERS,
    *transformer_models.BERTS,
    *transformer_models.SENTENCES,
    *transformer_models.WITH_HEADS,
    *models.PAST_LANGUAGE,
    *models.BIDAF,
    *seq2seq.ATTENDING,
]
SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}


def test_every_encoder_decoder_that_attends_is_here():
    assert [case for case in seq2seq.CASES if case.make().attends] == seq2seq.ATTENDING


@options_long(ATTENDING)
def test_rows_sum_to_one_or_see_nothing_and_padding_has_no_weight(case):
    model, inputs = case.built(), case.inputs()
    found = numbers(model.attention_weights(inputs))
    padded = numbers(model.attention_weights(case.padded(inputs, 2)))
    assert found
    local = isinstance(getattr(getattr(model, "decoder", None), "attention", None), LocalAttention)
    for name, weights in found.items():
        assert weights.ndim == 5
        assert np.all(weights >= 0)
        sums = weights.sum(axis=-1)
        assert np.any(sums > 0.1)
        # The Gaussian of a local attention takes from the sum.
        assert np.all((np.abs(sums - 1) < 1e-5) | (sums == 0) | (local & (sums < 1)))
        *_, T, S = weights.shape
        close(padded[name][..., :T, :S], weights)


def test_the_encoders_weights_are_the_papers_formula():
    model = Bert(17, **SIZES, max_length=13)
    inputs = {"token_ids": np.array([[3, 8, 16, 2, 5], [7, 1, 4, 0, 0]]), "lengths": [5, 3]}
    inputs["lengths"] = np.array(inputs["lengths"])
    model(inputs)
    randomize(model)
    weights = numbers(model.attention_weights(inputs)["encoder"])
    mask = np.repeat(right_padded([5, 3], 5)[:, None], 5, axis=1)
    for level, state in enumerate(numbers(model.hidden_states(inputs))[:-1]):
        attention = weights_of(model.encoder.blocks[level])["attention"]
        state = state.astype("float64")
        _, expected = references.multi_head_attention(state, state, state, mask, attention)
        close(weights[:, level], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "case",
    others_long([*transformer_models.TRANSFORMERS[:2], *seq2seq.ATTENDING], 5),
    ids=lambda case: case.name,
)
def test_a_decoders_weights_are_those_of_its_steps(case):
    model, inputs = case.built(), case.inputs()
    found = numbers(model.attention_weights(inputs))
    assert not np.any(np.triu(found.get("decoder", np.zeros((3, 3))), 1))
    state = model.encode(inputs["token_ids"], inputs["lengths"])
    for t in range(inputs["target_ids"].shape[1]):
        (_, given), state = model.step(inputs["target_ids"][:, t : t + 1], state)
        expected = found["cross"][:, -1, :, t].mean(axis=1)
        close(given[:, 0], expected, rtol=1e-4, atol=1e-5)


def test_a_language_models_weights_lie_on_the_states_before():
    case = models.PAST_LANGUAGE[0]
    model, inputs = case.built(), case.inputs()
    [weights] = numbers(model.attention_weights(inputs)["past"])[:1]
    window = model.attention.window
    hidden, _ = model.stack(model.embedding(inputs["token_ids"]))
    _, relative = numbers(model.attention(hidden, mask=right_padded([5, 3], 5)))
    for t in range(5):
        for s in range(5):
            expected = relative[0, t, s - t + window] if 0 <= s - t + window < window else 0
            close(weights[0, 0, t, s], expected)


def test_a_model_that_does_not_attend_says_so():
    model = RNNLanguageModel(17, 5, 7)
    message = r"^RNNLanguageModel: attention_weights: this model does not attend\.$"
    with pytest.raises(ValueError, match=message):
        model.attention_weights({"token_ids": ops.ones((B, 3), "int32")})

"""The likelihood of a text, beside a loop that predicts one token after the other."""

import keras
import numpy as np
import pytest

from seqkeras.analysis import TextLikelihood
from seqkeras.models import GPT, RNNLanguageModel
from tests.conftest import others_long

VOCAB_SIZE = 13
TOKENS = np.random.default_rng(0).integers(VOCAB_SIZE, size=23)


def log_prob(model, before, token):
    """The log-probability of a token behind others, which a model reads at once."""
    logits = keras.ops.convert_to_numpy(model({"token_ids": np.array([before])}))[0, -1]
    logits = logits.astype("float64") - logits.max()
    return logits[token] - np.log(np.exp(logits).sum())


def gpt():
    keras.utils.set_random_seed(0)
    model = GPT(VOCAB_SIZE, 8, 2, 2, 16, max_length=7)
    model.build()
    return model


@pytest.mark.parametrize("stride", others_long([None, 1, 3, 7]))
def test_a_gpt_predicts_each_token_from_its_window(stride):
    model, total = gpt(), 0.0
    step = stride or 7
    for place in range(1, len(TOKENS)):
        window = max(0, -(-(place - 7) // step))  # the first that holds the token as a target
        total += log_prob(model, TOKENS[window * step : place], TOKENS[place])
    found = TextLikelihood(TOKENS, 7, stride)(model)
    np.testing.assert_allclose(found, -total / (len(TOKENS) - 1), rtol=1e-5)


@pytest.mark.parametrize("cell", others_long(["lstm", "qrnn", "gru", "simple_rnn"]))
def test_a_recurrent_model_predicts_each_token_from_all_of_its_row(cell):
    keras.utils.set_random_seed(0)
    model = RNNLanguageModel(VOCAB_SIZE, 5, 7, 2, cell=cell)
    model.build(None)
    total, size = 0.0, 8  # 22 targets in 3 rows
    for place in range(1, len(TOKENS)):
        begin = (place - 1) // size * size
        total += log_prob(model, TOKENS[begin:place], TOKENS[place])
    found = TextLikelihood(TOKENS, 5, rows=3)(model)
    np.testing.assert_allclose(found, -total / (len(TOKENS) - 1), rtol=1e-5)


def test_a_text_shorter_than_a_window_is_predicted_too():
    model = gpt()
    found = TextLikelihood(TOKENS[:4], 7)(model)
    total = sum(log_prob(model, TOKENS[:place], TOKENS[place]) for place in (1, 2, 3))
    np.testing.assert_allclose(found, -total / 3, rtol=1e-5)


@pytest.mark.parametrize(("tokens", "stride"), [([3], None), (TOKENS, 0), (TOKENS, 8)])
def test_nothing_to_predict_and_strides_out_of_range_are_refused(tokens, stride):
    with pytest.raises(ValueError, match="^TextLikelihood: needs two tokens at least, and a stri"):
        TextLikelihood(tokens, 7, stride)

"""Dropout keeps the mean: where what is dropped enters linearly, training is right on average."""

import keras
import numpy as np
import pytest

from seqkeras import models
from seqkeras.attention import MultiHeadAttention, RestrictedSelfAttention
from seqkeras.transformer import DecoderBlock, FeedForward
from tests.arrays import close, floats, numbers, randomize

SAMPLES, RATE = 4000, 0.3


def decoder_block(name):
    """A pre-norm block with one dropout, in the last of its sublayers that give anything."""
    layer = DecoderBlock(6, 3, 11, pre_norm=True, **{name: RATE})
    inputs = {"sequence": floats(1, 4, 6), "encoded": floats(1, 5, 6, seed=1)}
    layer(**inputs)
    randomize(layer)
    if name != "activation_dropout":
        silent = [layer.attention.output_kernel, layer.attention.output_bias]
        for weight in [*silent, *layer.feed_forward.outer.weights]:
            weight.assign(np.zeros(weight.shape))
    return layer, inputs


def plain(layer, **inputs):
    layer(**inputs)
    return randomize(layer), inputs


def span_head():
    layer, inputs = plain(models.SpanHead(RATE), hidden=floats(1, 4, 6))
    return lambda **given: layer(**given)["start_logits"], inputs


CASES = {
    "weights of heads": lambda: plain(
        MultiHeadAttention(2, 3, dropout=RATE),
        query=floats(1, 2, 7),
        key=floats(1, 5, 7),
        value=floats(1, 5, 7),
    ),
    "weights in a window": lambda: plain(
        RestrictedSelfAttention(2, 3, window=2, dropout=RATE), sequence=floats(1, 5, 7)
    ),
    "feed-forward": lambda: plain(FeedForward(11, dropout=RATE), inputs=floats(1, 4, 6)),
    "activation of a decoder": lambda: decoder_block("activation_dropout"),
    "what cross-attention gives": lambda: decoder_block("dropout"),
    "weights of cross-attention": lambda: decoder_block("attention_dropout"),
    "ClassificationHead": lambda: plain(models.ClassificationHead(3, RATE), pooled=floats(1, 6)),
    "SpanHead": span_head,
    "MultipleChoiceHead": lambda: plain(models.MultipleChoiceHead(RATE), pooled=floats(1, 4, 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_dropout_drops_in_training_only_and_keeps_the_mean(name):
    keras.utils.set_random_seed(1)
    layer, inputs = CASES[name]()
    expected = numbers(layer(**inputs))[0]
    many = {each: np.repeat(array, SAMPLES, axis=0) for each, array in inputs.items()}
    close(numbers(layer(**many))[-1], expected, rtol=1e-4, atol=1e-5)
    samples = numbers(layer(**many, training=True))
    deviations = samples.std(axis=0)
    assert np.max(deviations) > 0.05  # something was dropped
    errors = np.abs(samples.mean(axis=0) - expected)
    assert np.all(errors < 5 * deviations / SAMPLES**0.5 + 1e-5)

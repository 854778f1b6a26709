"""The masks that Keras carries along, as behind `Embedding(mask_zero=True)`, are honoured."""

import keras
import numpy as np
import pytest

from seqkeras import attention
from seqkeras.transformer import Decoder, DecoderBlock, Encoder, EncoderBlock
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.autodiff import gradients_of

QUERY_IDS = np.array([[3, 8, 12], [7, 1, 0]])
KEY_IDS = np.array([[5, 2, 9, 4, 1], [6, 11, 0, 0, 0]])
QUERY_MASK, KEY_MASK = QUERY_IDS > 0, KEY_IDS > 0
SIZES = {"hidden_dim": 6, "num_heads": 3, "feed_forward_dim": 11}

ATTENTIONS = {
    "Attention": lambda: attention.Attention(attention.DotScore()),
    "LocalAttention(predictive)": lambda: attention.LocalAttention(
        attention.DotScore(), 2, "predictive"
    ),
    "HardAttention": lambda: attention.HardAttention(attention.DotScore()),
    "MultiHeadAttention": lambda: attention.MultiHeadAttention(3, 2),
}
SELF = {
    "EncoderBlock": lambda: EncoderBlock(**SIZES),
    "Encoder": lambda: Encoder(EncoderBlock(**SIZES), 2),
    "Decoder": lambda: Decoder(DecoderBlock(**SIZES, pre_norm=True, cross_attention=False), 2),
}
CROSS = {
    "DecoderBlock": lambda: DecoderBlock(**SIZES),
    "Decoder": lambda: Decoder(DecoderBlock(**SIZES, pre_norm=True), 2),
}
every_attention = pytest.mark.parametrize("make", ATTENTIONS.values(), ids=ATTENTIONS)


def embedding(seed):
    layer = keras.layers.Embedding(13, 6, mask_zero=True)
    layer.build((None, None))
    return randomize(layer, seed)


def embedded(ids, seed):
    """The same numbers without a mask."""
    return np.asarray(numbers(embedding(seed)(ids)))


def behind_embeddings(layer, keyword="key"):
    """A functional model: ids of queries and of keys -> the layer between their embeddings."""
    ids = [keras.Input((None,), dtype="int32") for _ in range(2)]
    query, key = (embedding(seed)(each) for seed, each in enumerate(ids))
    return keras.Model(ids, layer(query, key, key) if keyword == "key" else layer(query, key))


def first(outputs):
    return numbers(outputs)[0] if isinstance(outputs, (list, tuple)) else numbers(outputs)


@every_attention
def test_a_mask_of_embeddings_is_a_mask_of_attention(make):
    layer = make()
    model = behind_embeddings(layer)
    randomize(layer)
    actual = first(model([QUERY_IDS, KEY_IDS]))
    query, key = embedded(QUERY_IDS, 0), embedded(KEY_IDS, 1)
    expected = first(layer(query, key, key, attention_mask=KEY_MASK[:, None]))
    close(actual[QUERY_MASK], expected[QUERY_MASK])
    assert np.all(actual[~QUERY_MASK] == 0)
    assert not np.allclose(actual[QUERY_MASK], first(layer(query, key, key))[QUERY_MASK])


@every_attention
def test_an_attention_mask_and_the_one_of_embeddings_hold_together(make):
    layer, query, key = make(), embedded(QUERY_IDS, 0), embedded(KEY_IDS, 1)
    first_four = right_padded([4, 1], 5)[:, None]
    actual = layer(query, key, key, attention_mask=first_four, key_mask=KEY_MASK)
    expected = layer(query, key, key, attention_mask=first_four & KEY_MASK[:, None])
    close(first(actual), first(expected))
    of_value = layer(query, key, key, attention_mask=first_four, value_mask=KEY_MASK)
    close(first(of_value), first(expected))


@every_attention
def test_what_a_masked_query_or_key_holds_changes_nothing_and_has_no_gradient(make):
    layer, masks = make(), {"query_mask": QUERY_MASK, "key_mask": KEY_MASK}
    query, key = embedded(QUERY_IDS, 0), embedded(KEY_IDS, 1)
    factors = floats(2, 3, 6)

    def results(query, key):
        def loss(values):
            outputs = layer(values[0], values[1], values[1], **masks)
            outputs = outputs[0] if isinstance(outputs, tuple) else outputs
            return keras.ops.sum(keras.ops.multiply(factors, outputs))

        outputs = first(layer(query, key, key, **masks))
        return [outputs, *gradients_of(loss, [query, key])]

    expected = results(query, key)
    query[~QUERY_MASK] = key[~KEY_MASK] = np.nan
    close(results(query, key), expected)


def test_bi_attention_takes_the_masks_of_both_embeddings_and_passes_the_first_on():
    layer = attention.BiAttention()
    model = behind_embeddings(layer, keyword="query")
    randomize(layer)
    context, query = embedded(QUERY_IDS, 0), embedded(KEY_IDS, 1)
    expected = numbers(layer(context, query, context_mask=QUERY_MASK, query_mask=KEY_MASK))
    close(first(model([QUERY_IDS, KEY_IDS])), expected)
    pooled = keras.Model(model.inputs, keras.layers.GlobalAveragePooling1D()(model.outputs[0]))
    means = [row[mask].mean(axis=0) for row, mask in zip(expected, QUERY_MASK)]
    close(pooled([QUERY_IDS, KEY_IDS]), np.stack(means))


def test_restricted_attention_takes_the_mask_of_embeddings():
    layer, sequence = attention.RestrictedSelfAttention(3, 2, 2), embedded(KEY_IDS, 0)
    model = keras.Sequential([embedding(0), layer])
    close(first(model(KEY_IDS)), first(layer(sequence, mask=KEY_MASK)))


@pytest.mark.parametrize("make", SELF.values(), ids=SELF)
def test_a_block_takes_the_mask_of_embeddings_and_passes_it_on(make):
    layer, sequence = make(), embedded(KEY_IDS, 0)
    model = keras.Sequential([embedding(0), layer])
    model(KEY_IDS)
    randomize(layer)
    expected = first(layer(sequence, attention_mask=KEY_MASK[:, None]))
    close(first(model(KEY_IDS))[KEY_MASK], expected[KEY_MASK])
    model.add(keras.layers.GlobalAveragePooling1D())
    means = [row[mask].mean(axis=0) for row, mask in zip(expected, KEY_MASK)]
    close(model(KEY_IDS), np.stack(means))
    close(model.predict(KEY_IDS, verbose=0), np.stack(means))


@pytest.mark.parametrize("make", CROSS.values(), ids=CROSS)
def test_a_decoder_takes_the_masks_of_both_embeddings(make):
    layer = make()
    model = behind_embeddings(layer, keyword="encoded")
    randomize(layer)
    sequence, encoded = embedded(QUERY_IDS, 0), embedded(KEY_IDS, 1)
    expected = layer(sequence, encoded, attention_mask=QUERY_MASK[:, None], encoded_mask=KEY_MASK)
    close(first(model([QUERY_IDS, KEY_IDS]))[QUERY_MASK], first(expected)[QUERY_MASK])

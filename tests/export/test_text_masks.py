"""Masks that are filled in a graph: the best tokens by Keras, joined as `serving` joins them."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from seqkeras.export.pipelines.fill_mask import Masks
from tests.arrays import close, numbers
from tests.export.test_text_graphs import wordpieces
from tests.export.text_models import ask, read, saved
from tests.serving.pipelines.test_fill_mask import CONTINUED, SPACED, roberta


@pytest.mark.long
def test_masks_are_filled_with_the_best_tokens():
    model, _, tokenizers, _ = saved("FillMask")
    tokenizer = tokenizers["text"]
    texts = ["the [MASK] sat on the [MASK]", "[MASK], and tabs!", "a line [MASK]"]
    inputs, encodings = read(tokenizer, texts)
    logits = numbers(model(inputs | {"masked_positions": np.tile(np.arange(8), (3, 1))})["token"])
    scores = numbers(keras.ops.softmax(logits))
    actual = ask("FillMask", text=texts)
    assert actual["tokens"].shape == actual["scores"].shape == (3, 2, 5)
    for row, encoding in enumerate(encodings):
        places = [p for p, each in enumerate(encoding.tokens) if each == "[MASK]"]
        filled = texts[row]
        for number, place in enumerate(places):
            best = np.argsort(-scores[row, place])[:5]
            tokens = [tokenizer.token_of(int(each)) for each in best]
            assert [each.decode() for each in actual["tokens"][row, number]] == tokens
            close(actual["scores"][row, number], scores[row, place, best], rtol=1e-4, atol=1e-6)
            mask = r"(?:(?<=\S)\s*)?\[MASK\]" if tokens[0].startswith("##") else r"\[MASK\]"
            filled = re.sub(mask, tokens[0].removeprefix("##"), filled, count=1)
        assert actual["text"][row].decode() == filled
        assert not actual["scores"][row, len(places) :].any()
        assert set(actual["tokens"][row, len(places) :].ravel()) <= {b""}


def filled_by(tokenizer, mask, texts, token_ids, counts=None):
    """Texts with their masks filled, or as many first ones as `counts` says of each."""
    counts = counts or [text.count(mask) for text in texts]
    counts = tf.constant(counts, tf.int64)
    filled = Masks(tokenizer, mask).filled(tf.constant(texts), token_ids, counts)
    return [text.decode() for text in filled.numpy()]


def test_masks_that_were_cut_stay():
    tokenizer = wordpieces()
    texts = ["the [MASK] [MASK] [MASK].", "", "[MASK] a", "[MASK][MASK]"]
    token_ids = [tokenizer.id_of(filler) for filler in ("cat", "##s", "sat", "mat")]
    filled = filled_by(tokenizer, "[MASK]", texts, token_ids, [2, 0, 1, 1])
    assert filled == ["the cats [MASK].", "", "sat a", "mat[MASK]"]


@pytest.mark.parametrize(("text", "expected"), CONTINUED)
def test_word_pieces_stand_where_serving_puts_them(text, expected):
    tokenizer = wordpieces()
    fillers = [tokenizer.id_of("##s")] * text.count("[MASK]")
    assert filled_by(tokenizer, "[MASK]", [text], fillers) == [expected]


@pytest.mark.parametrize("trim_offsets", [False, True])
@pytest.mark.parametrize(("text", "filler", "expected"), SPACED)
def test_byte_pairs_stand_where_serving_puts_them(text, filler, expected, trim_offsets):
    tokenizer = roberta(trim_offsets)
    fillers = [tokenizer.id_of(filler)] * text.count("<mask>")
    assert filled_by(tokenizer, "<mask>", [text], fillers) == [expected]

"""What may stand where a text has masks."""

import dataclasses

import tensorflow as tf

from export.signatures import Signature
from export.text_graphs.characters import BLANK, checked, require
from export.text_graphs.pipelines.model import output_name, outputs_of, strings
from export.text_graphs.reading import Reader
from serving.manifest import TensorSpec
from serving.pipelines.fill_mask import CONTINUES, LINE_ENDS, TOP_K, Settings, how_it_stands

BLANK_END = f"[{BLANK}]+$"
LINE_BEGIN = f"(?s).*[{LINE_ENDS}][{BLANK}]*"


def fill_mask(signatures, tokenizers, limits, decoding, settings):
    """ "text" to the "text" with the best token for each mask, and its best "tokens" and "scores".

    Behind the masks of a text that has fewer than another stand "" and 0.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]
    masks = Masks(tokenizers["text"], settings.get("mask_token", Settings.mask_token))
    output = output_name(model, settings)
    [vocab_size] = [spec.shape[-1] for spec in model.outputs if spec.name == output]
    top_k = min(TOP_K, vocab_size)
    at_masks = any(spec.name == "masked_positions" for spec in model.inputs)

    def function(text):
        read = reader(checked(text))
        places = masks.places(read.token_ids)
        own = tf.sequence_mask(places.row_lengths())
        places = places.to_tensor()
        logits = outputs_of(model, dataclasses.replace(read, masked_positions=places))[output]
        if not at_masks:
            logits = tf.gather(logits, places, batch_dims=1)
        scores, best = tf.math.top_k(tf.nn.softmax(logits), top_k)
        return {
            "text": masks.filled(text, tf.boolean_mask(best[:, :, 0], own)),
            "tokens": tf.where(own[:, :, None], masks.tokens(best), ""),
            "scores": tf.where(own[:, :, None], scores, 0.0),
        }

    shape = ("batch", "masks", top_k)
    outputs = [
        strings("text"),
        TensorSpec("tokens", "string", shape),
        TensorSpec("scores", "float32", shape),
    ]
    return {"serving_default": Signature(function, [strings("text")], outputs)}


class Masks:
    """The masks of texts, and what each token is that stands for one.

    Args:
        tokenizer: a `Subwords`.
        mask_token: what a mask is written as.

    Raises:
        ValueError: if the vocabulary has no such token, or ids that are no token's.
    """

    def __init__(self, tokenizer, mask_token):
        ids = range(len(tokenizer))
        self._mask_token, self._mask_id = mask_token, tokenizer.id_of(mask_token)
        self._tokens = [tokenizer.decode([each], special_tokens=True).strip() for each in ids]
        self._fillers = self._tokens
        if tokenizer.is_word_piece:
            self._fillers = [each.removeprefix(CONTINUES) for each in self._tokens]
        takes_spaces = mask_token in tokenizer.left_stripped
        self._joins, self._spaced = zip(
            *(how_it_stands(tokenizer, each, takes_spaces) for each in ids)
        )

    def places(self, token_ids):
        """(B, T) ids to ragged (B, M) places of masks, at least one in each row."""
        found = token_ids == self._mask_id
        message = f"text: must hold a mask; write {self._mask_token} for what to fill in."
        found = require(found, (tf.reduce_any(found, axis=1), message))
        places = tf.range(tf.shape(token_ids, tf.int64)[1])
        return tf.ragged.boolean_mask(tf.broadcast_to(places, tf.shape(token_ids)), found)

    def tokens(self, token_ids):
        """The strings of ids."""
        return tf.gather(tf.constant(self._tokens), token_ids)

    def filled(self, texts, token_ids):
        """(B,) texts without their masks.

        Args:
            texts: (B,) strings.
            token_ids: (M,) what stands for each mask of all texts, one after the other.
        """
        parts = tf.strings.split(texts, self._mask_token)  # (B, masks + 1)
        before, last = parts[:, :-1], parts[:, -1:].values
        first = tf.ragged.range(before.row_lengths()).values == 0
        fillers = tf.gather(tf.constant(self._fillers), token_ids)
        filled = before.with_values(self._before(before.values, token_ids, first) + fillers)
        return tf.strings.reduce_join(filled.to_tensor(""), axis=1) + last

    def _before(self, before, token_ids, first):
        """(M,) what stands before fillers, of (M,) texts before masks, the first of a text or not.

        What `serving.pipelines.fill_mask` does in Python.
        """
        joins, spaced = (
            tf.gather(tf.constant(each), token_ids) for each in (self._joins, self._spaced)
        )
        bare = tf.strings.regex_replace(before, BLANK_END, "")
        behind_word = ~(first & (bare == ""))
        joins &= behind_word & ~tf.strings.regex_full_match(before, LINE_BEGIN)
        spaced &= behind_word & (before == bare)
        return tf.where(joins, bare, before) + tf.where(spaced, " ", "")

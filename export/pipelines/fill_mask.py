"""FillMask: a text with masks to the tokens that fill them."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import MARGIN, ExpectedAnswer, PipelineRecord, TextModel
from seqkeras.export.pipelines.targets import Targets, are_texts
from seqkeras.export.text_graphs.characters import BLANK, checked
from seqkeras.export.text_graphs.reading import Reader, padded
from seqkeras.export.text_graphs.row_errors import errors_of, first_of
from seqkeras.export.text_graphs.signatures import by_strings, output_name, outputs_of, strings
from seqkeras.metrics import exact_match
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.pipelines.fill_mask import (
    CONTINUES,
    LINE_ENDS,
    TOP_K,
    Settings,
    filler_spacing,
)

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature
    from seqkeras.serving.text import Tokenizer
    from seqkeras.tensors import Tensor

BLANK_END = f"[{BLANK}]+$"
LINE_BEGIN = f"(?s).*[{LINE_ENDS}][{BLANK}]*"


def fill_mask(source: TextModel) -> dict[str, Signature]:
    """Map "text" to the "text" with the best token for each mask, and its best "tokens" and
    "scores".

    Rows with fewer masks than others are padded with "" and 0. To truncate cuts masks too.
    """
    reader = Reader(source.tokenizers["text"], source.limits.source_length)
    model = source.signatures["serving_default"]
    mask_token = source.settings.get("mask_token", Settings.mask_token)
    masks = Masks(source.tokenizers["text"], mask_token)
    without_mask = f"text: must hold a mask; write {mask_token} for what to fill in."
    output = output_name(model, source.settings)
    [vocab_size] = [spec.shape[-1] for spec in model.outputs if spec.name == output]
    top_k = min(TOP_K, vocab_size)
    at_masks = any(spec.name == "masked_positions" for spec in model.inputs)

    def function(text, truncate):
        text = checked(text)
        encoded = reader(text, truncate=truncate)
        places = masks.places(encoded.token_ids)
        errors = first_of(encoded.errors, errors_of((places.row_lengths() > 0, without_mask)))
        counts = tf.where(errors == "", places.row_lengths(), 0)
        places, _ = padded(places, errors)
        is_mask = tf.sequence_mask(counts, tf.shape(places)[1])
        logits = outputs_of(model, dataclasses.replace(encoded, masked_positions=places))[output]
        if not at_masks:
            logits = tf.gather(logits, places, batch_dims=1)
        scores, best = tf.math.top_k(tf.nn.softmax(logits), top_k)
        answers = {
            "text": masks.filled(text.values, tf.boolean_mask(best[:, :, 0], is_mask), counts),
            "tokens": tf.where(is_mask[:, :, None], masks.tokens(best), ""),
            "scores": tf.where(is_mask[:, :, None], scores, 0.0),
        }
        return answers, errors

    shape = ("batch", "masks", top_k)
    outputs = [
        strings("text"),
        TensorSpec("tokens", "string", shape),
        TensorSpec("scores", "float32", shape),
    ]
    return by_strings(function, [strings("text")], outputs)


def _joined(parts):
    """Return (B,) the strings of each ragged row as one."""
    return tf.strings.reduce_join(parts.to_tensor(""), axis=1)


class Masks:
    """The masks of texts, and the text of each token that fills one.

    A ValueError says that the vocabulary lacks that token, or has ids without a token.
    """

    def __init__(self, tokenizer: Tokenizer, mask_token: str):
        ids = range(len(tokenizer))
        self._mask_token, self._mask_id = mask_token, tokenizer.id_in_texts(mask_token)
        self._tokens = [
            tokenizer.decode([token_id], special_tokens=True).strip() for token_id in ids
        ]
        self._fillers = self._tokens
        if tokenizer.is_word_piece:
            self._fillers = [token.removeprefix(CONTINUES) for token in self._tokens]
        takes_spaces = mask_token in tokenizer.left_stripped
        self._joins, self._spaced = zip(
            *(filler_spacing(tokenizer, token_id, takes_spaces) for token_id in ids)
        )

    def places(self, token_ids: Tensor) -> Tensor:
        """Map (B, T) ids to ragged (B, M) positions of masks."""
        is_mask = token_ids == self._mask_id
        places = tf.range(tf.shape(token_ids, tf.int64)[1])
        return tf.ragged.boolean_mask(tf.broadcast_to(places, tf.shape(token_ids)), is_mask)

    def tokens(self, token_ids: Tensor) -> Tensor:
        """Return the strings of ids."""
        return tf.gather(tf.constant(self._tokens), token_ids)

    def filled(self, texts: Any, token_ids: Tensor, counts: Tensor) -> Tensor:
        """Return (B,) texts with their first masks filled by (M,) tokens, (B,) `counts` of them."""
        parts = tf.strings.split(texts, self._mask_token)  # (B, masks + 1)
        places = tf.ragged.range(parts.row_lengths())
        is_filled = places < tf.expand_dims(counts, 1)
        before = tf.ragged.boolean_mask(parts, is_filled)
        first = tf.ragged.boolean_mask(places, is_filled).values == 0
        fillers = tf.gather(tf.constant(self._fillers), token_ids)
        filled = before.with_values(self._before(before.values, token_ids, first) + fillers)
        behind_mask = (places > tf.expand_dims(counts, 1)).values
        rest = tf.where(behind_mask, self._mask_token + parts.values, parts.values)
        rest = tf.ragged.boolean_mask(parts.with_values(rest), ~is_filled)
        return _joined(filled) + _joined(rest)

    def _before(self, before, token_ids, first):
        """Return (M,) texts before fillers, from (M,) texts before masks; `first`: of a text.

        `seqkeras.serving.pipelines.fill_mask` does the same in Python.
        """
        joins, spaced = (
            tf.gather(tf.constant(table), token_ids) for table in (self._joins, self._spaced)
        )
        bare = tf.strings.regex_replace(before, BLANK_END, "")
        behind_word = ~(first & (bare == ""))
        joins &= behind_word & ~tf.strings.regex_full_match(before, LINE_BEGIN)
        spaced &= behind_word & (before == bare)
        return tf.where(joins, bare, before) + tf.where(spaced, " ", "")


def _accuracy(answers, targets):
    tokens = [fillers[0].token for answer in answers for fillers in answer.masks]
    return exact_match(tokens, itertools.chain(*targets))


TARGETS = Targets(
    {"accuracy": _accuracy},
    "a list of a token for each mask",
    lambda target, row: are_texts(target) and len(target) == len(row.masks),
)


def _expected(outputs, answer, pipeline, given):
    """Return the text, and the scores of the best tokens, of which several may be equally good."""
    scores = np.array([[filler.score for filler in fillers] for fillers in answer.masks])
    return ExpectedAnswer(
        outputs["text"].decode(),
        answer.text,
        bool(np.any(scores[:, :1] - scores[:, 1:2] < MARGIN)),
        outputs["scores"][: len(scores)],
        scores,
    )


RECORD = PipelineRecord(
    feeds=TEXTS, targets=lambda settings: TARGETS, strings=fill_mask, expected=_expected
)

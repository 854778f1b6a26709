"""Signatures on strings of models that generate: the default search, n best, and sampling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from seqkeras.export.families.saved_models import by_default
from seqkeras.export.generation.searches import DRAWN, DRAWN_SPECS, N_BEST, SAMPLE, demands_of
from seqkeras.export.text_graphs.row_errors import errors_of, first_of
from seqkeras.export.text_graphs.signatures import SCORE, by_strings, strings
from seqkeras.serving.manifest import TensorSpec

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature
    from seqkeras.tensors import Tensor


def generating(
    answer: Callable[..., Any], signatures: Mapping[str, Signature]
) -> dict[str, Signature]:
    """Map "text" to "text" and "score", as `serving` searches by default.

    "n_best" gives "texts" and "scores", and "sample" draws tokens by the options of a row, if the
    model has these signatures on ids, name -> `Signature`.

    `answer` takes a signature on ids, the strings and `truncate`, and for "sample" its options by
    name; it returns the texts and scores of all rows and of all their results, in order, and the
    (B,) errors of rows.
    """
    text, results = [strings("text")], [strings("text"), SCORE]

    def one(model, text, truncate, **drawn):
        texts, scores, errors = answer(model, text, truncate, **drawn)
        return {"text": texts, "score": scores}, errors

    def several(text, truncate):
        texts, scores, errors = answer(signatures[N_BEST], text, truncate)
        return {"texts": tf.reshape(texts, tf.shape(scores)), "scores": scores}, errors

    def sample(text, truncate, **drawn):
        wrong = errors_of(*demands_of(**drawn))
        for name, (dtype, default) in DRAWN.items():
            drawn[name] = tf.where(wrong == "", drawn[name], tf.constant(default, dtype))
        outputs, errors = one(signatures[SAMPLE], text, truncate, **drawn)
        return outputs, first_of(wrong, errors)

    default = functools.partial(one, signatures[by_default(signatures)])
    made = by_strings(default, text, results)
    if N_BEST in signatures:
        shape = signatures[N_BEST].outputs[-1].shape
        best = [TensorSpec("texts", "string", shape), TensorSpec("scores", "float32", shape)]
        made |= by_strings(several, text, best, N_BEST)
    if SAMPLE in signatures:
        made |= by_strings(sample, [*text, *DRAWN_SPECS], results, SAMPLE)
    return made


def generated(results: Any, end_id: int) -> tuple[Tensor, Tensor]:
    """Return the ids of all results of all rows, (R, T), and which of them are text."""
    ids = results["generated_ids"]
    size = tf.shape(ids)[-1]
    ids = tf.reshape(ids, [-1, size])
    is_text = tf.sequence_mask(tf.reshape(results["generated_lengths"], [-1]), size)
    return ids, is_text & (ids != tf.cast(end_id, ids.dtype))

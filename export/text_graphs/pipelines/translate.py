"""The translation of a text."""

import re

import tensorflow as tf

from export.families.saved_models import by_default
from export.signatures import Signature
from export.text_graphs.characters import ANYTHING, VISIBLE, checked
from export.text_graphs.pipelines.model import outputs_of, score, strings
from export.text_graphs.reading import Reader, writer


def translate(signatures, tokenizers, limits, decoding, settings):
    """ "text" to "text" and "score", its log-probability, which beams have over the length penalty.

    By as many beams as `serving` follows by default; so is `generate`.
    """
    model = signatures[by_default(signatures)]
    reader = Reader(tokenizers["source"], limits.source_length)
    target = writer(tokenizers["target"])
    pattern, refusal = _accepted_text(settings["text_prefix"])

    def function(text):
        read = reader(checked(text, accepted=pattern, refusal=refusal))
        found = outputs_of(model, read)
        ids = found["generated_ids"]
        kept = tf.sequence_mask(found["generated_lengths"], tf.shape(ids)[1])
        kept &= ids != tf.cast(decoding.end_id, ids.dtype)
        return {"text": target.decode(ids, kept), "score": found["scores"]}

    return {"serving_default": Signature(function, [strings("text")], [strings("text"), score()])}


def _accepted_text(prefix):
    """The regular expression of the texts that begin as they must, and what is said of others."""
    if prefix is None:
        return ANYTHING, "must not be empty or blank."
    values = "|".join(re.escape(value) for value in prefix.values)
    return (
        rf"(?s)(?:{values}){re.escape(prefix.separator)}.*{VISIBLE}.*",
        f"must be a {prefix.name}, then {prefix.separator} and something after it; "
        f"known: {', '.join(prefix.values)}.",
    )

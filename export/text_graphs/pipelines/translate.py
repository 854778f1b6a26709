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

    Searches with the default number of beams of `serving`; so does `generate`.
    """
    model = signatures[by_default(signatures)]
    reader = Reader(tokenizers["source"], limits.source_length)
    target = writer(tokenizers["target"])
    pattern, refusal = _accepted_text(settings["text_prefix"])

    def function(text):
        encoded = reader(checked(text, accepted=pattern, refusal=refusal))
        found = outputs_of(model, encoded)
        ids = found["generated_ids"]
        kept = tf.sequence_mask(found["generated_lengths"], tf.shape(ids)[1])
        kept &= ids != tf.cast(decoding.end_id, ids.dtype)
        return {"text": target.decode(ids, kept), "score": found["scores"]}

    return {"serving_default": Signature(function, [strings("text")], [strings("text"), score()])}


def _accepted_text(prefix):
    """The regular expression of valid texts, and the message for others."""
    if prefix is None:
        return ANYTHING, "must not be empty or blank."
    values = "|".join(re.escape(value) for value in prefix.values)
    return (
        rf"(?s)(?:{values}){re.escape(prefix.separator)}.*{VISIBLE}.*",
        f"must be a {prefix.name}, then {prefix.separator} and something after it; "
        f"known: {', '.join(prefix.values)}.",
    )

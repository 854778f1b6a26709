"""What follows a prompt."""

import tensorflow as tf

from export.families.saved_models import by_default
from export.signatures import Signature
from export.text_graphs.characters import behind, checked
from export.text_graphs.pipelines.model import score, strings
from export.text_graphs.reading import Reader


def generate(signatures, tokenizers, limits, decoding, settings):
    """ "text" to the "text" that follows it, and "score"; see `translate`."""
    model = signatures[by_default(signatures)]
    most = min(limits.source_length, limits.target_length - 1)
    reader = Reader(tokenizers["text"], most, end_id=decoding.end_id)

    def function(text):
        read = reader(checked(text))
        ids, lengths = read.token_ids, read.lengths
        if settings.get("start"):
            first = tf.fill([tf.shape(ids)[0], 1], tf.constant(decoding.start_id, ids.dtype))
            ids, lengths = tf.concat([first, ids], axis=1), lengths + 1
        found = model.function(token_ids=ids, lengths=lengths)
        ids = found["generated_ids"]
        size = tf.shape(ids)[1]
        kept = tf.sequence_mask(found["generated_lengths"], size)
        kept &= ids != tf.cast(decoding.end_id, ids.dtype)
        whole = reader.tokenize.decode(ids, kept)
        prompt = reader.tokenize.decode(ids, kept & tf.sequence_mask(lengths, size))
        return {"text": behind(prompt, whole), "score": found["scores"]}

    return {"serving_default": Signature(function, [strings("text")], [strings("text"), score()])}

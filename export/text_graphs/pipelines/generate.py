"""The continuation of a prompt."""

import tensorflow as tf

from export.families.saved_models import by_default
from export.signatures import Signature
from export.text_graphs.characters import behind, checked
from export.text_graphs.pipelines.model import score, strings
from export.text_graphs.reading import Reader, writer
from serving.text import Turns

ANY = "(?s).*"  # a text that may be empty


def generate(signatures, tokenizers, limits, decoding, settings):
    """ "text", which may be empty, to the "text" that follows it, and "score"; see `translate`.

    Where prompts are turns, the text is what the user says.
    """
    model = signatures[by_default(signatures)]
    most = min(limits.source_length, limits.target_length - 1)
    reader = Reader(tokenizers["text"], most, end_id=decoding.end_id, empty=True)
    tokenizer = writer(tokenizers["text"])
    before, after = "", ""
    if settings.get("turns") is not None:
        before, after = Turns(**settings["turns"]).prompt("\0", "text").split("\0")

    def function(text):
        text = checked(text, accepted=ANY)
        encoded = reader(tf.strings.join([before, text, after]) if before or after else text)
        ids, lengths = _begun(encoded, decoding.start_id, settings.get("start"))
        lengths = reader.fitting(lengths)
        found = model.function(token_ids=ids, lengths=lengths)
        ids = found["generated_ids"]
        size = tf.shape(ids)[1]
        kept = tf.sequence_mask(found["generated_lengths"], size)
        kept &= ids != tf.cast(decoding.end_id, ids.dtype)
        whole = tokenizer.decode(ids, kept)
        prompt = tokenizer.decode(ids, kept & tf.sequence_mask(lengths, size))
        return {"text": behind(prompt, whole), "score": found["scores"]}

    return {"serving_default": Signature(function, [strings("text")], [strings("text"), score()])}


def _begun(encoded, start_id, always):
    """The ids of prompts and their lengths, with `start_id` before prompts that lack it.

    An empty prompt lacks it; with `always`, so does a prompt that starts with another token.
    """
    start_id = tf.constant(start_id, encoded.token_ids.dtype)
    missing = encoded.lengths == 0
    if always:
        first = tf.pad(encoded.token_ids, [[0, 0], [0, 1]])[:, 0]
        missing |= first != start_id
    count = tf.cast(missing, tf.int64)
    ids = tf.RaggedTensor.from_tensor(encoded.token_ids, encoded.lengths)
    begins = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(count)], start_id), count)
    return tf.concat([begins, ids], axis=1).to_tensor(), encoded.lengths + count

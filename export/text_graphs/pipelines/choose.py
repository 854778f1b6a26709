"""The best of several continuations of a text."""

import tensorflow as tf

from seqkeras.export.text_graphs.characters import checked, require
from seqkeras.export.text_graphs.pipelines.model import by_strings, output_name, outputs_of, strings
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.row_errors import first_in
from seqkeras.serving.manifest import TensorSpec


def choose(signatures, tokenizers, limits, decoding, settings):
    """Map "text" and "choices" to the best "choice", its "index", and the "scores" of all.

    All rows of a batch have as many choices; a row with a refused choice is refused.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]

    def function(text, choices, truncate):
        shape = tf.shape(choices)
        choices = require(choices, (shape[1] > 1, "choices: must be two at least."))
        texts = checked(text).repeated(shape[1])
        flat_choices = checked(tf.reshape(choices, [-1]), "choices")
        encoded = reader(texts, flat_choices, truncate=truncate)
        logits = outputs_of(model, encoded.grouped(shape))[output_name(model, settings)]
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)
        found = {
            "choice": tf.gather(choices, best, batch_dims=1),
            "index": best,
            "scores": tf.nn.softmax(logits),
        }
        return found, first_in(tf.reshape(encoded.errors, shape))

    inputs = [strings("text"), TensorSpec("choices", "string", ("batch", "choices"))]
    outputs = [
        strings("choice"),
        TensorSpec("index", "int32", ("batch",)),
        TensorSpec("scores", "float32", ("batch", "choices")),
    ]
    return by_strings(function, inputs, outputs)

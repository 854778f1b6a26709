"""The best of several continuations of a text."""

import tensorflow as tf

from export.signatures import Signature
from export.text_graphs.characters import checked, require
from export.text_graphs.pipelines.model import output_name, outputs_of, strings
from export.text_graphs.reading import Reader
from serving.manifest import TensorSpec


def choose(signatures, tokenizers, limits, decoding, settings):
    """ "text" and "choices" to the best "choice", its "index", and the "scores" of all.

    All rows of a batch have as many choices.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]

    def function(text, choices):
        shape = tf.shape(choices)
        choices = require(choices, (shape[1] > 1, "choices: must be two at least."))
        texts = tf.repeat(checked(text), shape[1])
        flat_choices = checked(tf.reshape(choices, [-1]), "choices")
        encoded = reader(texts, flat_choices, names=("text", "choices"))
        logits = outputs_of(model, encoded.grouped(shape))[output_name(model, settings)]
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "choice": tf.gather(choices, best, batch_dims=1),
            "index": best,
            "scores": tf.nn.softmax(logits),
        }

    inputs = [strings("text"), TensorSpec("choices", "string", ("batch", "choices"))]
    outputs = [
        strings("choice"),
        TensorSpec("index", "int32", ("batch",)),
        TensorSpec("scores", "float32", ("batch", "choices")),
    ]
    return {"serving_default": Signature(function, inputs, outputs)}

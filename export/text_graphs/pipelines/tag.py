"""A tag for each token of a text."""

import tensorflow as tf

from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.pipelines.model import by_strings, output_name, outputs_of, strings
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.serving.manifest import TensorSpec


def tag(signatures, tokenizers, limits, decoding, settings):
    """Map "text" to the "tags" of its tokens with "scores", and "starts" and "ends" in the text.

    Special tokens and padding have the tag "" at -1.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]
    name = output_name(model, settings)
    [output] = [spec for spec in model.outputs if spec.name == name]
    if len(output.shape) == 4:
        raise ValueError("text graph: Tag by chains of tags is not known.")
    labels = tf.constant(list(settings["labels"]))

    def function(text, truncate):
        encoded = reader(checked(text), truncate=truncate)
        scores = tf.nn.softmax(outputs_of(model, encoded)[name])
        own = encoded.starts >= 0
        found = {
            "tags": tf.where(own, tf.gather(labels, tf.argmax(scores, axis=-1)), ""),
            "scores": tf.where(own, tf.reduce_max(scores, axis=-1), 0.0),
            "starts": encoded.starts,
            "ends": encoded.ends,
        }
        return found, encoded.errors

    shape = ("batch", "length")
    outputs = [
        TensorSpec("tags", "string", shape),
        TensorSpec("scores", "float32", shape),
        TensorSpec("starts", "int32", shape),
        TensorSpec("ends", "int32", shape),
    ]
    return by_strings(function, [strings("text")], outputs)

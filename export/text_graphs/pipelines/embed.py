"""The embedding of a text."""

import tensorflow as tf

from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.pipelines.model import by_strings, output_name, outputs_of, strings
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.serving.manifest import TensorSpec


def embed(signatures, tokenizers, limits, decoding, settings):
    """Map "text" to its "embedding", of length 1 if the settings say so."""
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]
    name = output_name(model, settings)

    def function(text, truncate):
        encoded = reader(checked(text), truncate=truncate)
        vectors = outputs_of(model, encoded)[name]
        if settings.get("normalize", True):
            norms = tf.norm(vectors, axis=-1, keepdims=True)
            vectors = tf.math.divide_no_nan(vectors, norms)
        return {"embedding": vectors}, encoded.errors

    [spec] = [output for output in model.outputs if output.name == name]
    outputs = [TensorSpec("embedding", "float32", spec.shape)]
    return by_strings(function, [strings("text")], outputs)

"""SavedModels for TensorFlow Serving.

`saved_model/1` takes token ids, `saved_model_text/1` strings. Both hold core TensorFlow operators
only, and load without our code.
"""

import tensorflow as tf

from export.signatures import to_trace
from seqkeras import composites


def write(model, signatures, folder):
    """Write a model's signatures as a SavedModel.

    Args:
        model: the Keras model, for its weights.
        signatures: name -> `Signature`.
        folder: to make.
    """
    module = tf.Module()  # Keras's ExportArchive would store every variable twice
    module.weights = [variable.value for variable in model.variables]
    functions = {name: _traced(signature) for name, signature in signatures.items()}
    tf.saved_model.save(module, str(folder), signatures=functions)


def _traced(signature):
    def function(**tensors):
        with composites.as_nodes(()):  # a graph to keep: no operator of the GPU that traces it
            return signature.function(**tensors)

    return to_trace(function, signature.inputs)

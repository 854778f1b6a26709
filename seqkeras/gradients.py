"""Functions with a gradient of their own, whose graphs go with their models.

TensorFlow registers the gradient of each traced `tf.custom_gradient` in the process for ever, and
with it the graph: 1.5 MB for each trace of a small LSTM (TensorFlow 2.21). Here the operation of
the graph holds the gradient, and the registry only finds it.
"""

import weakref

import keras
from keras import ops, tree


def custom_gradient(function):
    """Return a function that is differentiated by a gradient of its own.

    Args:
        function: (tensors) -> results, and their gradient; see `keras.ops.custom_gradient`.
    """
    differentiated = ops.custom_gradient(function)
    if keras.backend.backend() != "tensorflow":
        return differentiated

    def with_gradient(*tensors):
        results = differentiated(*tensors)
        hold_gradient(tree.flatten(results)[0])
        return results

    return with_gradient


def hold_gradient(tensor):
    """Let the operation that made a traced tensor hold its gradient, and not the registry.

    Args:
        tensor: a result of a function of `tf.custom_gradient`; an eager one has nothing to hold.
    """
    import tensorflow as tf
    from tensorflow.python.framework.ops import gradient_registry

    if not tf.is_symbolic_tensor(tensor):
        return
    name = tensor.op.get_attr("_gradient_op_type").decode()
    entries = gradient_registry._registry
    gradient = gradient_registry.lookup(name)
    tensor.op._gradient_function = gradient
    held = weakref.ref(gradient)
    entries[name] = entries[name] | {"type": lambda *args: held()(*args)}
    weakref.finalize(gradient, entries.pop, name, None).atexit = False

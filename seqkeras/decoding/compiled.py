"""Compile functions by the backend, so that Python does not run the loop."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, compiled: a loop of many small steps, as in generation, is much faster.

        @compiled
        def translate(token_ids, lengths):
            state = model.encode(token_ids, lengths)
            return beam(model.step, state, num_beams=4, start_id=2, end_id=3, max_length=50)

    The function reads `keras.Variable`s anew at every call, and what it assigns to them stays: a
    model answers with its weights at that time, and a `keras.random.SeedGenerator` continues.
    All other values outside of the arguments are constants from the time of tracing.

    On TensorFlow it is a `tf.function`, traced once for the first shapes, and once for all others.
    On JAX it is traced for every combination of shapes: pad sources to few lengths; and to draw
    random numbers it needs a seed. PyTorch runs the function as it is.

    Args:
        function: takes and returns tensors, None, and dictionaries, lists and tuples of them. For
            a method compile the bound one, `compiled(self.method)`.

    Returns:
        A function of the same arguments, as tensors or NumPy arrays. A number that differs from
        call to call must be an array. The seed of `sample` can not be an argument: make a
        `keras.random.SeedGenerator` outside of the function, and name it inside.

    Raises:
        TypeError: when the result is called, if an argument is or holds anything else.

    Example:
        >>> from keras import ops
        >>> from seqkeras.decoding import compiled
        >>> total = compiled(lambda numbers: ops.sum(numbers, axis=-1))
        >>> ops.convert_to_numpy(total(ops.convert_to_tensor([[1.0, 2.0], [3.0, 4.0]]))).tolist()
        [3.0, 7.0]
    """
    wrap = {"tensorflow": _graph, "jax": _jitted}.get(
        keras.backend.backend(), lambda unwrapped: unwrapped
    )
    traced = wrap(function)

    @functools.wraps(function)
    def call(*arguments, **named):
        tensors = [_tensors(function, at, argument) for at, argument in enumerate(arguments)]
        named = {name: _tensors(function, name, argument) for name, argument in named.items()}
        return traced(*tensors, **named)

    return call


def _tensors(function, name, argument):
    """Return an argument, its arrays as tensors."""

    def tensor(value):
        if value is None:
            return None
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            who = getattr(function, "__name__", "the function")
            raise TypeError(
                f"compiled: argument {name!r} of {who} must be of arrays, tensors or None; "
                f"received {type(value).__name__}."
            )
        return ops.convert_to_tensor(value)

    return tree.map_structure(tensor, argument)


def _graph(function):
    import tensorflow as tf

    return tf.function(function, autograph=False, reduce_retracing=True)


def _jitted(function):
    import jax

    known = {}

    def call(*arguments, **named):
        tensors, structure = jax.tree.flatten((arguments, named))
        signature = structure, *((tensor.shape, tensor.dtype) for tensor in tensors)
        if signature not in known:
            known[signature] = _pure(function, arguments, named)
        pure, variables, assigned = known[signature]
        results, values = pure([variable.value for variable in variables], arguments, named)
        for variable, value in zip(assigned, values, strict=True):
            variable.assign(value)
        return results

    return call


def _pure(function, arguments, named):
    """Return the function with its variables as the first argument, those that it reads or assigns,
    and those that it assigns, whose values are the second result."""
    import jax

    with _Recorder() as recorder:
        # A function that JAX has not seen before, or it would not run it.
        jax.eval_shape(lambda *values: function(*values, **named), *arguments)
    variables = list(recorder.variables.values())
    assigned = [
        variable for variable in variables if recorder.get_current_value(variable) is not None
    ]

    def pure(values, arguments, named):
        with keras.StatelessScope(zip(variables, values, strict=True)) as scope:
            results = function(*arguments, **named)
        return results, [scope.get_current_value(variable) for variable in assigned]

    return jax.jit(pure), variables, assigned


class _Recorder(keras.StatelessScope):
    """A scope that notes which variables are read or assigned in it."""

    def __init__(self) -> None:
        super().__init__()
        self.variables = {}

    def get_current_value(self, variable):
        self.variables[id(variable)] = variable
        return super().get_current_value(variable)

    def add_update(self, update):
        self.variables[id(update[0])] = update[0]
        super().add_update(update)

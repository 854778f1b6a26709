"""A model as a function of tensors by keyword, however it takes them."""

import inspect
import re
from collections.abc import Mapping

import keras
import numpy as np

from export.families.shapes import at_some_size, infer_outputs


def called(model, inputs):
    """A Keras model as a function of tensors by keyword, and what it returns.

    A functional model takes the structure of its inputs. A subclass of `keras.Model` is called with
    keywords if its `call` has these names, else with the only tensor, else with a dictionary.

    Args:
        model: a Keras model that seqkeras does not define.
        inputs: list of `TensorSpec`.

    Returns:
        The function, and the list of `TensorSpec` of its results.

    Raises:
        ValueError: if the model can not be called so; it gives the model's own reason.
    """

    def traced(way):
        function = by_keyword(way)
        return function, infer_outputs(function, inputs)

    return _with_first_way(model, inputs, traced)


def build(model, inputs):
    """Call a model once to create the weights that Keras could not create while loading it.

    Args:
        model: a subclass of `keras.Model`.
        inputs: list of `TensorSpec`.

    Raises:
        ValueError: if the model can not be called so.
    """

    def ones(sizes):
        return {
            spec.name: np.ones([sizes.get(size, size) for size in spec.shape], spec.dtype)
            for spec in inputs
        }

    def call(way):
        at_some_size(inputs, lambda sizes, _: way(ones(sizes)))

    _with_first_way(model, inputs, call)


def _with_first_way(model, inputs, use):
    """The result of `use` for the first way of calling the model that raises nothing."""
    errors = []
    for way in _ways(model, [spec.name for spec in inputs]):
        try:
            return use(way)
        except Exception as error:  # the model's own code can raise anything
            errors.append(error)
    given = ", ".join(f"{spec.name} {spec.dtype} ({axes_of(spec.shape)})" for spec in inputs)
    raise ValueError(
        f"a {type(model).__name__} can not be called with {given}: {reason_of(errors[0])}; "
        "name its inputs, and axes that are alike by one name: `inputs` of save_run or plan_export."
    ) from errors[0]


def by_keyword(way):
    """Turn a function of a dictionary of tensors into one of keywords that returns a dictionary."""
    return lambda **tensors: by_name(way(tensors))


def _ways(model, names):
    """Ways to call a model with a dictionary of tensors, the likeliest first."""
    structure = getattr(model, "_inputs_struct", None)
    if structure is not None:
        own = [tensor.name for tensor in keras.tree.flatten(structure)]
        order = own if set(own) == set(names) else names
        return [lambda t: model(keras.tree.pack_sequence_as(structure, [t[n] for n in order]))]
    ways = []
    if set(names) <= set(inspect.signature(model.call).parameters):
        ways.append(lambda tensors: model(**tensors))
    if len(names) == 1:
        ways.append(lambda tensors: model(tensors[names[0]]))
    return [*ways, model]


def by_name(outputs, prefix=""):
    """Outputs of any structure as a flat dictionary; names within names are joined by "_".

    The only output of a model is called "output".
    """
    if isinstance(outputs, Mapping):
        named = outputs
    elif isinstance(outputs, list | tuple):
        named = {str(place): output for place, output in enumerate(outputs)}
    else:
        return {prefix or "output": outputs}
    flat = {}
    for name, value in named.items():
        own = f"{prefix}_{name}" if prefix else f"output_{name}" if named is not outputs else name
        flat |= by_name(value, own)
    return flat


def reason_of(error):
    """An exception's message in one line, without the text that Keras and TensorFlow add."""
    text = re.sub(r"\x1b\[\d*m|\{\{.*?\}\} ?| ?\[Op:.*", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Exception encountered when calling")]
    reason = lines[0].rstrip(".") if lines else ""
    return reason if isinstance(error, ValueError) else f"{type(error).__name__}: {reason}"


def axes_of(shape):
    """A shape in words."""
    return ", ".join(map(str, shape))

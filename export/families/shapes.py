"""The symbolic shapes of what a function gives, from those of what it takes."""

import itertools

import tensorflow as tf

from serving.manifest import TensorSpec

SIZES = ((2, 3, 5, 7, 11, 13), (3, 5, 7, 11, 13, 17))  # of the symbols, in two traces


def infer_outputs(function, inputs):
    """The `TensorSpec`s of a function's results.

    The function is traced with two sizes for each symbol. An axis that has one size in both is a
    number; one that has a symbol's sizes is that symbol; any other gets a name of its own.

    Args:
        function: takes tensors by keyword, returns a dictionary of tensors.
        inputs: list of `TensorSpec`.

    Returns:
        A list of `TensorSpec`, in the order of the function's results.
    """
    symbols = dict.fromkeys(size for spec in inputs for size in spec.shape if isinstance(size, str))
    traces = [
        _trace(function, inputs, dict(zip(symbols, itertools.cycle(sizes)))) for sizes in SIZES
    ]
    names = {tuple(sizes[place] for sizes in SIZES): symbol for place, symbol in enumerate(symbols)}
    return [
        TensorSpec(
            name,
            first.dtype.name,
            tuple(
                _name(f"{name}_axis_{axis}", pair, names)
                for axis, pair in enumerate(zip(first.shape, second.shape, strict=True))
            ),
        )
        for (name, first), second in zip(traces[0].items(), traces[1].values(), strict=True)
    ]


def _name(own, pair, names):
    if pair in names:
        return names[pair]
    return pair[0] if pair[0] == pair[1] and pair[0] is not None else own


def _trace(function, inputs, sizes):
    """The results of a function, as tensors that know their shapes."""
    specs = {
        spec.name: tf.TensorSpec([sizes.get(size, size) for size in spec.shape], spec.dtype)
        for spec in inputs
    }
    order = []

    @tf.function(autograph=False)
    def traced(**tensors):
        results = function(**tensors)
        order.extend(results)  # TensorFlow would sort them
        return results

    outputs = traced.get_concrete_function(**specs).structured_outputs
    return {name: outputs[name] for name in order}

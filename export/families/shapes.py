"""The symbolic shapes of a function's outputs, from its inputs' shapes."""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from seqkeras.serving.manifest import TensorSpec

# The sizes of symbols in two traces. The batch size falls, so no size derived from a length
# equals it; lengths rise, by primes, so no length equals a size derived from another one.
BATCH = 5, 2
LENGTHS = (3, 5), (4, 7), (6, 13), (8, 19), (10, 27), (12, 41)
LONGER = 0, 8, 32, 128, 512  # additional steps, for models that reject short sequences


def at_some_size(inputs: Sequence[TensorSpec], use: Callable[..., Any]) -> Any:
    """Return the result of `use` for the first sizes for which it raises nothing.

    `use` takes two dictionaries, of sizes by symbol; the first symbol of the inputs is the batch.
    If it fails for all sizes, the error is that of the first.
    """
    symbols = dict.fromkeys(size for spec in inputs for size in spec.shape if isinstance(size, str))
    errors = []
    for steps in LONGER:
        lengths = ((one + steps, other + steps) for one, other in itertools.cycle(LENGTHS))
        pairs = dict(zip(symbols, itertools.chain([BATCH], lengths)))
        try:
            return use(*({name: pair[trace] for name, pair in pairs.items()} for trace in (0, 1)))
        except Exception as error:  # the model's own code can raise anything
            errors.append(error)
    raise errors[0]


def infer_outputs(
    function: Callable[..., Any], inputs: Sequence[TensorSpec], of_ones: bool = False
) -> list[TensorSpec]:
    """Return the `TensorSpec`s of a function's results, in their order.

    The function is traced with two sizes for each symbol, the shortest that it accepts. An axis
    with the same size in both traces is a number; one with a symbol's two sizes is that symbol; any
    other axis gets a new name. A function whose sizes depend on no value may be called with ones
    first, which is quicker than a trace.
    """
    if of_ones:
        with contextlib.suppress(Exception):  # the function may refuse ones
            return at_some_size(inputs, lambda *pair: _outputs(_of_ones, function, inputs, pair))
    return at_some_size(inputs, lambda *pair: _outputs(_trace, function, inputs, pair))


def _outputs(results, function, inputs, pair):
    traces = [results(function, inputs, sizes) for sizes in pair]
    names = {(size, pair[1][symbol]): symbol for symbol, size in pair[0].items()}
    return [
        TensorSpec(
            name,
            first.dtype.name,
            tuple(
                _name(f"{name}_axis_{axis}", sizes, names)
                for axis, sizes in enumerate(zip(first.shape, second.shape, strict=True))
            ),
        )
        for (name, first), second in zip(traces[0].items(), traces[1].values(), strict=True)
    ]


def _name(new, pair, names):
    if pair in names:
        return names[pair]
    return pair[0] if pair[0] == pair[1] and pair[0] is not None else new


def _of_ones(function, inputs, sizes):
    """Return the results of a function for ones."""
    return function(
        **{
            spec.name: tf.ones([sizes.get(size, size) for size in spec.shape], spec.dtype)
            for spec in inputs
        }
    )


def _trace(function, inputs, sizes):
    """Return the results of a function, as tensors that know their shapes."""
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

"""A function to export as a graph, with the names, dtypes and shapes of its tensors."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from seqkeras.serving.manifest import TensorSpec


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of tensors by keyword that returns a dictionary of tensors."""

    function: Callable
    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]

    @functools.cached_property
    def traced(self) -> Any:
        """The function in a graph with open sizes, traced once: a concrete function of tensors in
        the order of the inputs."""
        return to_trace(self.function, self.inputs).get_concrete_function()


def to_trace(function: Callable[..., Any], inputs: Sequence[TensorSpec]) -> Any:
    """Return a `tf.function` of tensors in order of a function of tensors by keyword."""
    names = [spec.name for spec in inputs]
    specs = [
        tf.TensorSpec(
            [n if isinstance(n, int) else None for n in spec.shape], spec.dtype, spec.name
        )
        for spec in inputs
    ]

    @tf.function(input_signature=specs, autograph=False)
    def traced(*tensors):
        return function(**dict(zip(names, tensors, strict=True)))

    return traced

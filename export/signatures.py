"""A function that leaves as a graph, with the names, dtypes and shapes that it promises."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from serving.manifest import TensorSpec


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of tensors by keyword that returns a dictionary of tensors."""

    function: Callable
    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]


def tensorflow_specs(specs):
    """`TensorSpec`s as TensorFlow writes them; a symbolic size is None there."""
    return [
        tf.TensorSpec(
            [size if isinstance(size, int) else None for size in spec.shape], spec.dtype, spec.name
        )
        for spec in specs
    ]

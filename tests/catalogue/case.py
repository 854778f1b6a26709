"""What a case of the catalogue is, and the sizes that all of them share."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from tests.arrays import randomize

B, T, S, D, U = 2, 3, 5, 7, 11  # batch, target and source length, width of the input, units


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A layer or model, and what the properties must know of it.

    Args:
        name: of the test.
        make: () -> the layer, not built, made with arguments that are not the defaults.
        inputs: () -> its call arguments by name; a model takes them as one dictionary.
        lengths: argument -> the axis along which padding may be added at the end. A mask among
            them is padded with False, everything else with 13.
        mask: the argument that masks steps or positions, if there is one; where a row of it is
            all False, the row's outputs are zero.
        past: the arguments (axis 1 is time) whose later steps may not change earlier outputs.
        scale: how much larger inputs may grow in the test of half precision.
    """

    name: str
    make: Callable
    inputs: Callable
    lengths: dict = dataclasses.field(default_factory=dict)
    mask: str | None = None
    past: tuple = ()
    scale: float = 1e3

    def build(self):
        """The layer with random weights."""
        layer = self.make()
        call(layer, self.inputs())
        return randomize(layer)

    def padded(self, inputs, steps):
        """The inputs with padding added: masked where there is a mask, and full of numbers."""
        return inputs | {
            name: np.pad(
                inputs[name],
                [(0, steps if each == axis else 0) for each in range(inputs[name].ndim)],
                constant_values=False if inputs[name].dtype == bool else 13,
            )
            for name, axis in self.lengths.items()
        }


def call(layer, inputs, **options):
    """The outputs, as a layer takes its inputs or as a model does."""
    if isinstance(layer, keras.Model):
        return layer(inputs, **options)
    return layer(**inputs, **options)

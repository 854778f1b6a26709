"""What a case of the catalogue is, and the sizes that all of them share."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from unittest import mock

import keras
import numpy as np
from keras import tree

import seqkeras
from tests.arrays import BACKEND, randomize

WITHOUT_LAYERS = {"analysis", "data", "tokenizers", "training", "export", "serving"}
B, T, S, D, U = 2, 3, 5, 7, 11  # batch, target and source length, width of the input, units

INITIALIZERS = [
    each
    for each in vars(keras.initializers).values()
    if isinstance(each, type) and "__call__" in vars(each)
]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A layer or model, and what the properties must know of it.

    Args:
        name: of the test; it begins with the name of the class.
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

    @property
    def layer_class(self):
        """The class of the layer, without making one."""
        return public_layers()[re.split(r"[(,]", self.name)[0]]

    def build(self):
        """The layer with random weights."""
        layer = self.make()
        build(layer, self.inputs())
        return randomize(layer)

    def built(self):
        """The layer of `build`, but the same one every time: who asks must not change it."""
        return _built(self, keras.config.dtype_policy().name)

    def padded(self, inputs, steps, number=13):
        """The inputs with padding added: masked where there is a mask, full of a number elsewhere.

        Integers are padded with 13, whatever the number.
        """
        values = {"b": False, "f": number}
        return inputs | {
            name: np.pad(
                inputs[name],
                [(0, steps if each == axis else 0) for each in range(inputs[name].ndim)],
                constant_values=values.get(inputs[name].dtype.kind, 13),
            )
            for name, axis in self.lengths.items()
        }


@functools.cache
def public_layers():
    """Name -> class, of every public layer and model."""
    found = {}
    for module in pkgutil.iter_modules(seqkeras.__path__):
        if module.ispkg and module.name not in WITHOUT_LAYERS:
            package = importlib.import_module(f"seqkeras.{module.name}")
            found |= {name: getattr(package, name) for name in package.__all__}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    }


@functools.cache
def _built(case, policy):
    return case.build()


def call(layer, inputs, **options):
    """The outputs, as a layer takes its inputs or as a model does.

    JAX, which compiles every small operation by itself, compiles a whole layer in less time.
    """
    if BACKEND != "jax" or options or _symbolic(inputs):
        return _call(layer, inputs, **options)
    build(layer, inputs)
    return _compiled(layer)([each.value for each in layer.variables], inputs)


def build(layer, inputs):
    """Make the weights of a layer that has none."""
    if BACKEND != "jax":
        _call(layer, inputs)
    elif not layer.built:
        with _without_first_numbers():
            _call(layer, tree.map_structure(_symbol, inputs))


def _call(layer, inputs, **options):
    if isinstance(layer, keras.Model):
        return layer(inputs, **options)
    return layer(**inputs, **options)


def _symbolic(inputs):
    return any(isinstance(each, keras.KerasTensor) for each in tree.flatten(inputs))


def _symbol(array):
    return keras.KerasTensor(array.shape, array.dtype.name)


@contextlib.contextmanager
def _without_first_numbers():
    """Weights begin as zeros: to make a random one JAX compiles, and tests give them numbers."""
    with contextlib.ExitStack() as stack:
        for each in INITIALIZERS:
            stack.enter_context(mock.patch.object(each, "__call__", _zeros))
        yield


def _zeros(self, shape, dtype=None, **options):
    return np.zeros(shape, dtype)


@functools.cache
def _compiled(layer):
    """(values of its variables, inputs) -> outputs, as one function of XLA."""
    import jax

    def function(values, inputs):
        pairs = zip(layer.variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            return _call(layer, inputs)

    return jax.jit(function)

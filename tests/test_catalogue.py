import importlib
import inspect
import pkgutil

import keras
import pytest

import seqkeras
from seqkeras.recurrent.cell import Cell
from seqkeras.recurrent.rnn import RNN, Recurrent
from tests.catalogue import CASES, recurrent

MADE = {case: case.make() for case in [*CASES, *recurrent.STATEFUL]}
WITHOUT_LAYERS = {"analysis", "data", "tokenizers"}  # and slow to import


def public_layers():
    for module in pkgutil.iter_modules(seqkeras.__path__):
        if module.ispkg and module.name not in WITHOUT_LAYERS:
            package = importlib.import_module(f"seqkeras.{module.name}")
            for name in package.__all__:
                value = getattr(package, name)
                if inspect.isclass(value) and issubclass(value, keras.layers.Layer):
                    yield value


def test_the_catalogue_holds_every_public_layer_and_model():
    assert {type(MADE[case]) for case in CASES} == set(public_layers())


def test_case_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)


def arguments(layer_class):
    """Those of a layer, and those that a recurrent layer or a cell hands on: name -> default."""
    owners = [layer_class]
    if issubclass(layer_class, Recurrent):
        owners += [*layer_class.cell_class.__mro__, RNN]
    elif issubclass(layer_class, Cell):
        owners += layer_class.__mro__
    handed_on = {"self"} | ({"cell"} if len(owners) > 1 else set())
    return {
        name: parameter.default
        for owner in owners
        if owner is layer_class or issubclass(owner, (Cell, RNN))
        for name, parameter in inspect.signature(owner.__init__).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name not in handed_on
    }


@pytest.mark.parametrize("layer_class", dict.fromkeys(map(type, MADE.values())), ids=str)
def test_every_argument_is_given_a_value_that_is_not_its_default(layer_class):
    if layer_class.__init__ is keras.layers.Layer.__init__:
        return  # no argument of its own
    configs = [layer.get_config() for layer in MADE.values() if type(layer) is layer_class]
    for name, default in arguments(layer_class).items():
        assert any(name in config and config[name] != default for config in configs), name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_layer_is_registered_under_the_librarys_name(case):
    layer_class = type(MADE[case])
    registered = keras.saving.get_registered_name(layer_class)
    assert registered == f"seqkeras>{layer_class.__name__}"

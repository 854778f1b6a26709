import functools
import inspect

import keras
import pytest

from seqkeras.models import PermutedGPT
from seqkeras.recurrent.cell import Cell
from seqkeras.recurrent.rnn import RNN, Recurrent
from seqkeras.transformer import TwoStreamBlock
from tests.catalogue import CASES, recurrent
from tests.catalogue.case import public_layers

ALL = [*CASES, *recurrent.STATEFUL]
# Arguments that a class inherits and refuses.
REFUSED = {
    TwoStreamBlock: {"attention_window"},
    PermutedGPT: {"attention_window", "mask"},
}


@functools.cache
def configs_by_class():
    """The class of a layer -> the configurations of its cases."""
    configs = {}
    for case in ALL:
        layer = case.make()
        assert type(layer) is case.layer_class, case.name
        configs.setdefault(type(layer), []).append(layer.get_config())
    return configs


def test_the_catalogue_holds_every_public_layer_and_model():
    missing = {*public_layers().values()} - {case.layer_class for case in CASES}
    names = ", ".join(sorted(each.__name__ for each in missing))
    assert not missing, f"{names}: no case; add one to CASES of a family in tests/catalogue"


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


@pytest.mark.parametrize("layer_class", dict.fromkeys(case.layer_class for case in ALL), ids=str)
def test_every_argument_is_given_a_value_that_is_not_its_default(layer_class):
    if layer_class.__init__ is keras.layers.Layer.__init__:
        return  # no argument of its own
    configs = configs_by_class()[layer_class]
    defaults = arguments(layer_class).items()
    missing = [
        name
        for name, default in defaults
        if name not in REFUSED.get(layer_class, ())
        and not any(name in config and config[name] != default for config in configs)
    ]
    assert not missing, (
        f"{layer_class.__name__}: no case gives {', '.join(missing)} a value that is not the "
        "default; add one to its family in tests/catalogue"
    )


@pytest.mark.parametrize("layer_class", public_layers().values(), ids=public_layers())
def test_every_layer_is_registered_under_the_librarys_name(layer_class):
    registered = keras.saving.get_registered_name(layer_class)
    assert registered == f"seqkeras>{layer_class.__name__}"

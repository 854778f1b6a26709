"""The public names of `seqkeras.data` come with their modules, each at its first use."""

import ast
import inspect

import pytest

from seqkeras import data
from tests.conftest import run_python


def test_types_all_and_the_first_use_name_the_same():
    tree = ast.parse(inspect.getsource(data))
    [typed] = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.name: statement.module.removeprefix("seqkeras.data.")
        for statement in typed.body
        for alias in statement.names
    }
    assert imported == data._MODULE_OF
    assert sorted(imported) == sorted(data.__all__)
    assert all(getattr(data, name).__name__ == name for name in data.__all__)
    assert set(data.__all__) <= set(dir(data))


def test_a_reader_imports_no_keras():
    told = "import sys; from seqkeras.data import read_columns; print('keras' in sys.modules)"
    assert run_python("-c", told).stdout == "False\n"


def test_another_name_is_refused():
    with pytest.raises(AttributeError, match="module 'seqkeras.data' has no attribute 'read_all'"):
        data.read_all  # noqa: B018

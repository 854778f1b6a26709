"""Every public name has a docstring with an example, and the example says the truth.

`pytest tests/test_reference.py -k recurrent` runs those of `seqkeras.recurrent`.
"""

import contextlib
import doctest
import inspect
import io

import keras
import pytest

from tests.public_names import members, public_names

MODULES = sorted(public_names())
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples_of(name, value):
    """Return the doctests of a class with its methods, or of a function.

    They see no names but those that they import, as a reader who pastes them.
    """
    finder = doctest.DocTestFinder(exclude_empty=True)
    try:
        return [test for test in finder.find(value, name, globs={}) if test.examples]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def failures(test):
    """Return what a doctest prints that it should not, or an empty text."""
    told = io.StringIO()
    keras.utils.set_random_seed(0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    with contextlib.redirect_stderr(io.StringIO()):  # lines of progress and warnings of libraries
        runner.run(test, out=told.write)
    return told.getvalue()


@pytest.mark.parametrize("module", MODULES)
def test_every_example_prints_what_it_says(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tests = [test for name, value in members(module).items() for test in examples_of(name, value)]
    told = [failures(test) for test in tests]
    assert not any(told), "\n" + "".join(told)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring_with_an_example(module):
    found = members(module).items()
    assert not [name for name, value in found if not inspect.getdoc(value)]
    missing = [name for name, value in found if not examples_of(name, value)]
    assert not missing, f"{len(missing)} of {len(found)}: {', '.join(missing)}"

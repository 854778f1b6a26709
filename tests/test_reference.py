"""Every public name has a docstring with an example, and the example says the truth.

`pytest tests/test_reference.py -k recurrent` runs those of `seqkeras.recurrent`. Examples that open
bundles of every pipeline are long.
"""

import contextlib
import doctest
import inspect
import io
import re

import keras
import pytest

from tests import zoo
from tests.public_names import members, public_names

MODULES = sorted(public_names())
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OTHER_PACKAGES = {"apache_beam"}  # of environments of their own
BUNDLES = {  # what an example may open, as bundles/NAME: a small model with random weights
    "choices": zoo.choose,
    "dates": zoo.translate,
    "entities": zoo.tag,
    "gestures": zoo.classify_frames,
    "masks": zoo.fill_mask,
    "questions": zoo.answer_of_words,
    "reviews": zoo.classify,
    "sentences": zoo.embed,
    "stories": zoo.generate,
    "weather": zoo.forecast,
}
STREAMS = ("gestures",)  # bundles that are exported with a stream
SAVED_MODELS = ("reviews",)  # and with SavedModels, which take most of the time
OPEN_MANY = {f"seqkeras.serving.{name}" for name in ("pipelines", "results", "streams")}
CHECKPOINT = "checkpoints/tiny-bert"  # of Google's BERT, which an example may load


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A function of a folder and a name: puts the bundle of that name into the folder, once."""
    from seqkeras.export.bundle import ExportOptions, export

    made = tmp_path_factory.mktemp("bundles")

    def put(folder, name):
        if not (made / name).exists():
            run = tmp_path_factory.mktemp("runs") / name
            BUNDLES[name](run)
            options = ExportOptions(stream=name in STREAMS, saved_models=name in SAVED_MODELS)
            export(run, made / name, options=options)
        place = folder / "bundles" / name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(made / name)

    return put


def write_checkpoint(folder):
    from tests.seqkeras.pretrained import test_google_bert as google

    folder.mkdir(parents=True)
    google.save(folder, google.values())


def public_members(module):
    """Return the classes and functions of a public module; skip what this environment lacks."""
    try:
        return members(module)
    except ModuleNotFoundError as error:
        if error.name not in OTHER_PACKAGES:
            raise
        pytest.skip(f"needs {error.name}")


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


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(module, marks=[pytest.mark.long] if module in OPEN_MANY else [])
        for module in MODULES
    ],
)
def test_every_example_prints_what_it_says(module, bundles, tmp_path, monkeypatch, restored):
    monkeypatch.chdir(tmp_path)
    found = public_members(module).items()
    tests = [test for name, value in found for test in examples_of(name, value)]
    shown = "".join(test.docstring for test in tests)
    for name in BUNDLES.keys() & set(re.findall(r"bundles/(\w+)", shown)):
        bundles(tmp_path, name)
    if CHECKPOINT in shown:
        write_checkpoint(tmp_path / CHECKPOINT)
    told = [failures(test) for test in tests]
    assert not any(told), "\n" + "".join(told)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring_with_an_example(module):
    found = public_members(module).items()
    assert not [name for name, value in found if not inspect.getdoc(value)]
    missing = [name for name, value in found if not examples_of(name, value)]
    assert not missing, f"{len(missing)} of {len(found)}: {', '.join(missing)}"


@pytest.mark.parametrize("module", MODULES)
def test_every_signature_has_types(module):
    missing = [
        f"{name}({argument})"
        for name, value in public_members(module).items()
        for argument in untyped(value)
    ]
    assert not missing, ", ".join(missing)


def untyped(value):
    """Return the arguments without a type of a function, or of a class whose constructor is ours;
    "returns" where the result of a function has none."""
    function = inspect.unwrap(value.__init__ if inspect.isclass(value) else value)
    if not (getattr(function, "__module__", None) or "").startswith("seqkeras"):
        return []
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    signature = inspect.signature(function)
    found = [
        name
        for name, parameter in signature.parameters.items()
        if name != "self"
        and parameter.kind not in kinds
        and parameter.annotation is parameter.empty
    ]
    returns = inspect.isclass(value) or signature.return_annotation is not signature.empty
    return found if returns else [*found, "returns"]

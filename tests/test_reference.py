"""Every public name has a docstring with its arguments, results, errors and an example, and the
example says the truth.

`pytest tests/test_reference.py -k recurrent` runs those of `seqkeras.recurrent`. Examples that open
bundles of every pipeline are long.
"""

import ast
import contextlib
import doctest
import inspect
import io
import re
import textwrap

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
    "sentences": zoo.embed,
    "stories": zoo.generate,
    "weather": zoo.forecast,
}
STREAMS = ("gestures",)  # bundles that are exported with a stream
OPEN_MANY = {f"seqkeras.serving.{name}" for name in ("pipelines", "results", "streams")}
CHECKPOINT = "checkpoints/tiny-bert"  # of Google's BERT, which an example may load


@pytest.fixture(scope="module")
def bundles(tmp_path_factory, request):
    """A function of a folder and a name: puts the bundle of that name into the folder, once.

    Only "reviews", `classifier_bundle`, has SavedModels, which take most of the time.
    """
    from seqkeras.export.bundle import ExportOptions, export

    made = tmp_path_factory.mktemp("bundles")

    def put(folder, name):
        bundle = made / name
        if name == "reviews":
            bundle = request.getfixturevalue("classifier_bundle")
        elif not bundle.exists():
            run = tmp_path_factory.mktemp("runs") / name
            BUNDLES[name](run)
            options = ExportOptions(stream=name in STREAMS, saved_models=False)
            export(run, bundle, options=options)
        place = folder / "bundles" / name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(bundle)

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
    for name in {"reviews", *BUNDLES} & set(re.findall(r"bundles/(\w+)", shown)):
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


@pytest.mark.parametrize("module", MODULES)
def test_a_docstring_names_each_argument_and_the_result(module):
    missing = [
        f"{name}({part})"
        for name, value in public_members(module).items()
        for part in unnamed(value, inspect.getdoc(value))
    ]
    assert not missing, ", ".join(missing)


@pytest.mark.parametrize("module", MODULES)
def test_a_docstring_names_the_errors_that_the_code_raises_itself(module):
    missing = [
        f"{function.__qualname__}: {error}"
        for value in public_members(module).values()
        for function, docstrings in functions_of(value)
        for error in raised_in(function)
        if not re.search(rf"\b{error}\b", sections(docstrings, "Raises"))
    ]
    assert not missing, ", ".join(missing)


def signature_of(value):
    """Return the function of a function, or the constructor of a class, with its parameters by
    name; None and none where it is not ours."""
    function = inspect.unwrap(value.__init__ if inspect.isclass(value) else value)
    if not is_ours(function):
        return None, {}
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    parameters = inspect.signature(function).parameters
    named = {
        name: parameter
        for name, parameter in parameters.items()
        if name != "self" and parameter.kind not in kinds
    }
    return function, named


def is_ours(value):
    return (getattr(value, "__module__", None) or "").startswith("seqkeras")


def untyped(value):
    """Return the arguments without a type of a function, or of a class whose constructor is ours;
    "returns" where the result of a function has none."""
    function, parameters = signature_of(value)
    found = [name for name, one in parameters.items() if one.annotation is one.empty]
    if function is None or inspect.isclass(value) or "return" in function.__annotations__:
        return found
    return [*found, "returns"]


def unnamed(value, docstring):
    """Return the arguments that a docstring does not name; "returns" where it is silent on the
    result of a function that has one."""
    function, parameters = signature_of(value)
    found = [name for name in parameters if not re.search(rf"\b{name}\b", docstring)]
    if function is None or inspect.isclass(value):
        return found
    result = inspect.formatannotation(inspect.signature(function).return_annotation)
    has_result = result.strip("'") not in ("None", "collections.abc.Iterator[None]")
    silent = has_result and not re.search(r"\b(Return|Yield)s?\b", docstring)
    return [*found, "returns"] if silent else found


def functions_of(value):
    """Yield (function, docstrings): a public function; the public methods of a class."""
    if not inspect.isclass(value):
        yield inspect.unwrap(value), [value.__doc__]
        return
    for name, member in vars(value).items():
        if not name.startswith("_") or name in ("__call__", "__init__", "__post_init__"):
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            function = inspect.unwrap(function)
            if inspect.isfunction(function) and is_ours(function):
                yield function, [value.__doc__, function.__doc__]


def raised_in(function):
    """Return the names of the classes of errors that a function's own lines raise."""
    if not is_ours(function) or function.__code__.co_filename == "<string>":  # of a dataclass
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    classes = [error.func if isinstance(error, ast.Call) else error for error in raised]
    names = {ast.unparse(error).rpartition(".")[2] for error in classes}
    return {name for name in names if name[0].isupper()}  # others are made elsewhere


def sections(docstrings, title):
    """Return the text of the sections of a title in docstrings."""
    found = [
        re.findall(rf"^{title}:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(text), re.DOTALL | re.MULTILINE)
        for text in docstrings
        if text
    ]
    return "".join("".join(texts) for texts in found)

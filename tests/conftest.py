"""Which tests a backend of Keras runs, and which are long; a small run, and its bundle."""

import atexit
import contextlib
import functools
import gc
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: one thread is enough for each
    for pool in ("OMP_NUM", "TF_NUM_INTRAOP", "TF_NUM_INTEROP"):
        os.environ.setdefault(f"{pool}_THREADS", "1")
    os.environ.setdefault("NPROC", "1")  # XLA's

from seqkeras import serving  # noqa: F401 (turns onnxruntime's telemetry off)

with contextlib.suppress(ImportError):  # the environments of Beam, Ray and Spark have none
    import hypothesis

    # The same inputs each time, however slow the machine is; `tests.random_inputs` draws new ones.
    hypothesis.settings.register_profile(
        "repeatable", deadline=None, derandomize=True, database=None
    )
    hypothesis.settings.load_profile("repeatable")

CHECKOUT = Path(__file__).resolve().parents[1]
BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")
if BACKEND != "tensorflow":  # the library alone: the rest is TensorFlow's and ONNX Runtime's
    collect_ignore = [
        "benchmarks",
        "end_to_end",
        "export",
        "learning",
        "parity",
        "random_inputs",
        "serving",
        "training",
        "seqkeras/analysis",
        "seqkeras/data",
        "test_catalogue.py",
        "test_imports.py",
        "test_reference.py",
        "test_security.py",
    ]
if BACKEND == "jax":  # compiles every small operation; the same one only once, with this folder
    compiled = tempfile.mkdtemp(prefix="jax-compiled-")
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", compiled)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


def public_data(name):
    """The path of a public file in the folder that SEQKERAS_DATA names; without it the test is
    skipped."""
    path = Path(os.environ.get("SEQKERAS_DATA", "")) / name
    if "SEQKERAS_DATA" not in os.environ or not path.exists():
        pytest.skip(f"needs {name} in the folder that SEQKERAS_DATA names")
    return path


LONG = {"benchmarks", "journeys", "learning"}  # folders of what `make test-all` alone runs
# What another backend computes otherwise shows in these properties of layers, not of models.
ELSEWHERE = {f"test_{name}.py" for name in ("padding", "past", "gradients")}


def pytest_ignore_collect(collection_path, config):
    """`make test` does not even import the folders of which it runs nothing."""
    if config.option.markexpr == "not long" and collection_path.is_dir():
        return collection_path.name in LONG or None
    return None


def pytest_collection_modifyitems(items):
    """Mark what is long by its folder or backend."""
    for item in items:
        folders = set(item.path.parent.relative_to(CHECKOUT / "tests").parts)
        elsewhere = BACKEND != "tensorflow" and "properties" in folders
        if LONG & folders or (elsewhere and not _is_of_a_layer(item)):
            item.add_marker(pytest.mark.long)


def _is_of_a_layer(item):
    """Whether a test is of `ELSEWHERE`, and its case no model."""
    import keras

    case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
    is_model = case is not None and issubclass(case.layer_class, keras.Model)
    return item.path.name in ELSEWHERE and not is_model


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """Under `pytest -n`, tests that share something costly run in one process.

    `--dist loadgroup` would do it by marks, but pytest-xdist 3.8.0 groups nothing with pytest 9.2:
    https://github.com/pytest-dev/pytest-xdist/issues/1386
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatTheyShare(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _shared(nodeid)

    return ByWhatTheyShare(config, log)


# What tests share -> words of the files that share it.
SHARED = {
    "dates": ("dates_run", "dates_bundle"),
    "text models": ("text_models",),
    "letters": ("letters_bundle",),
    "classifier": ("classifier_bundle",),
}


def _shared(nodeid):
    """The name of what a test shares: the run of dates, a case of the catalogue, or its file."""
    file, _, name = nodeid.partition("::")
    if file.startswith("tests/properties/") and "[" in name:
        return name.partition("[")[2]
    return _shared_by(file)


@functools.cache
def _shared_by(file):
    text = (CHECKOUT / file).read_text(encoding="utf-8")
    found = (name for name, words in SHARED.items() if any(word in text for word in words))
    return next(found, file)


def others_long(cases, short=1):
    """Cases of a parametrized test: `make test` runs the first, `make test-all` the others too."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.long] if place >= short else [],
        )
        for place, case in enumerate(cases)
    ]


def long_fixture(function):
    """A fixture of a module that trains for long: `make test-all` alone runs its tests."""
    params = [pytest.param(None, id="long", marks=pytest.mark.long)]
    return pytest.fixture(scope="module", params=params)(function)


def pytest_collection_finish():
    """Spare the garbage collector what the libraries have made while they were imported, and the
    objects of graphs: by default it takes a seventh of the time of tests that trace."""
    global _frozen
    gc.collect()
    gc.freeze()
    _frozen = gc.get_freeze_count()
    gc.set_threshold(100_000, 20, 100)


SMALL = (
    "--cell gru --locales de,ja --examples 1280 --in-text 0.1 --passes 1 --batch-size 64 "
    "--units 32 --decoder-units 32 --embedding-dim 16 --learning-rate 0.01 --test-examples 50 "
    "--steps-per-save 10"
).split()


@pytest.fixture
def restored():
    """The precision of Keras is as before when the test ends."""
    import keras

    before, floatx = keras.config.dtype_policy(), keras.config.floatx()
    yield
    keras.config.set_dtype_policy(before)
    keras.config.set_floatx(floatx)


@pytest.fixture(autouse=True)
def _seeded():
    """The same weights and dropout every time: Keras takes its seeds from Python's `random`."""
    random.seed(0)


@pytest.fixture(autouse=True)
def _let_go_of_trainings(request):
    """What a command of a long test made goes with it, and not with the module."""
    before = gc.get_freeze_count()
    yield
    if request.node.get_closest_marker("long") and gc.get_freeze_count() > before:
        gc.unfreeze()  # `seqkeras train` froze what is garbage now
        gc.collect()


MOST_FROZEN = 200_000  # objects, beside those of the libraries; to look at all takes 0.7 s


@pytest.fixture(autouse=True, scope="module")
def _let_go(request):
    """Models, graphs and sessions that the tests of a module share go after the last of them."""
    global _frozen
    # The last test of the module before has let its fixtures go only now.
    much = gc.get_freeze_count() > _frozen + MOST_FROZEN  # may be garbage
    if much:
        gc.unfreeze()
    gc.collect()
    gc.freeze()  # modules imported meanwhile, and what the session shares: not looked at again
    if much:
        _frozen = gc.get_freeze_count()
    yield
    folder = request.module.__name__.rpartition(".")[0]
    file = Path(request.module.__file__).relative_to(CHECKOUT).as_posix()
    kept = {f"{folder}.text_models"} if _shared_by(file) == "text models" else set()
    for name, module in list(sys.modules.items()):  # those of the folder that tests import, too
        if name.rpartition(".")[0] == folder and name not in kept:
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear") and value.__module__ == name:
                    value.cache_clear()
    if "tensorflow" in sys.modules:
        _forget_gradients()
    if "jax" in sys.modules:
        # What it compiles holds maps of memory, of which Linux gives a process 65,530.
        sys.modules["jax"].clear_caches()


def _forget_gradients():
    """Let graphs of Keras's optimizers go: https://github.com/tensorflow/tensorflow/issues/97697"""
    from tensorflow.python.framework.ops import gradient_registry

    for name in [name for name in gradient_registry.list() if name.startswith("CustomGradient-")]:
        del gradient_registry._registry[name]


def in_shell(line, folder):
    """What a line of ours prints that is pasted in a shell, in a folder.

    "python" is the interpreter of the tests, which finds the checkout.
    """
    python = shlex.quote(sys.executable)
    called = f'python() {{ {python} "$@"; }}\nseqkeras() {{ python -m seqkeras "$@"; }}\n{line}'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", called],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def start_python(*arguments, env=(), **options):
    """Start `python ARGUMENTS` in the checkout, as a user does; its streams are pipes of text."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        **pipes
        | {"env": {**os.environ, "COLUMNS": "100", **dict(env)}, "encoding": "utf-8"}
        | {"cwd": CHECKOUT}
        | options,
    )


def run_python(*arguments, input=None, **options):
    """Run `python ARGUMENTS` to its end: as `subprocess.run` returns it."""
    process = start_python(*arguments, **options)
    output, error = process.communicate(input)
    return subprocess.CompletedProcess(process.args, process.returncode, output, error)


@pytest.fixture(scope="session")
def dates_run(tmp_path_factory):
    """A finished run of the dates task: two locales, a small model, twenty steps."""
    from seqkeras.training.__main__ import main

    folder = tmp_path_factory.mktemp("runs") / "dates"
    assert main(["dates", "--out", str(folder), *SMALL]) == 0
    return folder


@pytest.fixture(scope="session")
def dates_bundle(dates_run, tmp_path_factory):
    """The bundle of `dates_run`."""
    from seqkeras.export.__main__ import main

    folder = tmp_path_factory.mktemp("bundles") / "dates"
    assert main([str(dates_run), str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def letters_bundle(tmp_path_factory):
    """A function of "Generate" or "Translate": a bundle of letters, made once, to read only."""
    from tests.serving.exported import write_letters

    parent = tmp_path_factory.mktemp("letters")
    return functools.cache(lambda kind: write_letters(parent / kind, kind))


@pytest.fixture(scope="session")
def classifier_bundle(tmp_path_factory):
    """The bundle of `tests.zoo.classify`, with SavedModels, to read only; beside it, the run."""
    from seqkeras.export.bundle import export
    from tests.zoo import classify

    folder = tmp_path_factory.mktemp("classifier")
    classify(folder / "run")
    export(folder / "run", folder / "reviews")
    return folder / "reviews"

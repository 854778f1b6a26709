"""TensorFlow and Keras without the lines that libraries print while they load.

What they say of a result still comes, once and in a line: Python's warnings, and the lines of
TensorFlow's log that tell of a function that does something else than it says.
"""

import atexit
import contextlib
import gc
import logging
import os
import sys
import warnings
from pathlib import Path

__all__ = ["import_keras"]

MOST_COMPILED = 2**30  # bytes of steps that JAX has compiled, on disk
# Packages that TensorFlow and Keras import where they are installed, and export does not need.
DETOURS = ("jax", "pandas", "sklearn", "matplotlib")
# TensorFlow's lines of an `if` that ran once, while it was traced, and of inputs of other shapes.
OF_RESULTS = ("AutoGraph could not transform", "incompatible shape")


def import_tensorflow():
    """Import TensorFlow quietly: the C++ side logs to file descriptor 2 before any setting is read.

    A failing import still raises its Python exception. Where Keras is imported here first, its
    functions of `DETOURS` do nothing: for a model that learns from their arrays see `import_keras`.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silence(), _without_collections(), _without_detours():
        import tensorflow

        tensorflow.config.list_physical_devices()  # looks for a GPU, and reports that there is none
    logger = tensorflow.get_logger()
    logger.setLevel(logging.WARNING)
    if not any(isinstance(known, OfResults) for known in logger.filters):  # the first time
        logger.addFilter(OfResults())
        atexit.register(gc.freeze)  # nor at anything when the process ends, which takes seconds
    warnings.formatwarning = in_a_line


def import_keras() -> None:
    """Import Keras and its backend without the lines that they print while they load.

    TensorFlow prints some of them before it reads `TF_CPP_MIN_LOG_LEVEL`. Errors, and warnings
    about a result, are still shown: each once, in one line. On JAX, compiled steps are kept in
    `~/.cache/seqkeras/jax`, unless JAX's own settings name a folder or forbid it.

    Call it before anything else imports Keras or TensorFlow.

    Example:
        >>> from seqkeras.quiet import import_keras
        >>> import_keras()
        >>> import keras
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silence(), _without_collections():
        import keras
    warnings.formatwarning = in_a_line
    if keras.backend.backend() == "tensorflow":
        import_tensorflow()
    elif keras.backend.backend() == "jax":  # whose integers have 32 bits; every token id fits
        warnings.filterwarnings("ignore", "Explicitly requested dtype int64", UserWarning)
        _keep_what_jax_compiles()


def set_seed(seed):
    """Seed Python, NumPy and Keras, which imports TensorFlow for it where there is one: quietly."""
    import keras

    with _silence():
        keras.utils.set_random_seed(seed)


def _keep_what_jax_compiles():
    """Let JAX keep compiled steps on disk, unless its own settings name a folder or forbid it, or
    none can be made."""
    import jax

    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        return
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = caches / "seqkeras" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the second where nobody has a home
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if jax.config.jax_compilation_cache_max_size < 0:  # none was given
        jax.config.update("jax_compilation_cache_max_size", MOST_COMPILED)


def in_a_line(message, category, filename, lineno, line=None):
    """Return a warning as a line, without the source that gave it."""
    return f"warning: {' '.join(str(message).split())}\n"


class OfResults(logging.Filter):
    """Lets errors pass, and each warning that tells of a result once, in a line."""

    def __init__(self):
        super().__init__()
        self._told = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; a warning's message is put in a line."""
        if record.levelno >= logging.ERROR:
            return True
        text = " ".join(record.getMessage().split())
        if text in self._told or not any(part in text for part in OF_RESULTS):
            return False
        self._told.add(text)
        record.msg, record.args = text, ()
        return True


@contextlib.contextmanager
def _without_detours():
    """Let `DETOURS` seem not to be installed; afterwards each of them can be imported."""
    needed = {*sys.modules, os.environ.get("KERAS_BACKEND")}
    absent = [name for name in DETOURS if name not in needed]
    sys.modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


@contextlib.contextmanager
def _without_collections():
    """Collect no garbage among modules, now and later: that takes a quarter of an import."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


@contextlib.contextmanager
def few_collections():
    """Collect garbage among young objects alone: graphs hold millions of objects that live on."""
    thresholds = gc.get_threshold()
    gc.set_threshold(20 * thresholds[0], thresholds[1], 1000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextlib.contextmanager
def _silence():
    stderr = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)

"""Export's reasons against a run, for `seqkeras.runs.save_run`, which asks before it saves the run.

The model is loaded on the CPU in a separate thread, and called there unless seqkeras defines it:
Keras's names, policies and scopes and TensorFlow's strategies are thread-local, so the training
script keeps its own. The random states of Python and NumPy, from which layers draw seeds, are
restored.
"""

import contextlib
import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from export.checking import ARGUMENTS, reasons_against, wrong_kind
from export.families.calling import reason_of
from export.keras_layers import steps_as_rows
from export.run import read_run
from seqkeras.runs import RunError


def refusals_of(folder):
    """Export's reasons against a run that are known before tracing, in terms of `save_run`.

    Args:
        folder: of a run, a `Path`.

    Returns:
        Every reason, as a list; an empty one if there is none.
    """
    with _same_random_numbers(), ThreadPoolExecutor(1) as pool:
        return pool.submit(_refusals, folder).result()


def _refusals(folder):
    with tf.device("CPU:0"), steps_as_rows(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = read_run(folder)
            plan = run.plan()
        except RunError as error:
            return [reason.rstrip(".") for reason in error.reasons]
        except ValueError as error:
            return [reason_of(error)]
        wrong = [*wrong_kind(run, plan)]
        return wrong or reasons_against(run, plan, ARGUMENTS)


@contextlib.contextmanager
def _same_random_numbers():
    """Restore the random states of Python and NumPy at the end of this context."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)

"""Export's reasons against a run that `seqkeras.export.save_run` has written aside.

The model is loaded on the CPU in a separate thread, and called there unless seqkeras defines it:
Keras's names, policies and scopes and TensorFlow's strategies are thread-local, so the training
script keeps its own. The random states of Python and NumPy, from which layers draw seeds, are
restored.
"""

import contextlib
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from seqkeras.export.checks.fit import ARGUMENTS, reasons_against
from seqkeras.export.families.calling import reason_of
from seqkeras.export.feeds import SINGLE_PASS
from seqkeras.export.keras_layers import steps_as_rows
from seqkeras.export.proof import calls_of, user_call
from seqkeras.export.run import read_run
from seqkeras.runs import RunError
from seqkeras.runs.reference import Reference

WAYS_OUT = (
    "call must be of the validation examples, in their order, as the pipeline feeds them; binding "
    "names the model's inputs; and the model must be the same when it is loaded again"
)


def refusals_of(folder: Path, model: keras.Model) -> tuple[list[str], Reference | None]:
    """Return Export's reasons against a run that are known before tracing, in terms of `save_run`;
    and the `Reference` of the run, or that of `model` called by its own names, or None."""
    with _same_random_numbers(), ThreadPoolExecutor(1) as pool:
        return pool.submit(_refusals, folder, model).result()


def _refusals(folder, model):
    with tf.device("CPU:0"), steps_as_rows(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = read_run(folder)
            plan = run.plan()
        except RunError as error:
            return [reason.rstrip(".") for reason in error.reasons], None
        except ValueError as error:
            return [reason_of(error)], None
        reasons = reasons_against(run, plan, ARGUMENTS)
        if reasons or plan.kind != SINGLE_PASS:
            return reasons, run.reference
        return _beside_own_call(run, plan, model)


def _beside_own_call(run, plan, model):
    """Return what differs between the loaded model in its pipeline and the user's call."""
    calls = calls_of(run, plan)
    try:
        call = user_call(run, plan, calls, model)
    except Exception as error:  # the model's own code can raise anything
        reason = reason_of(error)
        return [
            f"the model can not be called by the names of its inputs: {reason}; give call"
        ], None
    if call is None:
        return [], None
    problem = call.difference([outputs for _, outputs in calls]).problem
    return [f"{problem}; {WAYS_OUT}"] if problem else [], call.reference


@contextlib.contextmanager
def _same_random_numbers():
    """Restore the random states of Python and NumPy at the end of this context."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)

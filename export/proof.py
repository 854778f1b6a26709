"""A comparison of exported models with the outputs of the user's own call of a model.

The reference of a run (`seqkeras.runs.Reference`) is computed without any function of export's, so
a wrapper that binds an input wrongly, and a model that has lost weights on the way, differ from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from seqkeras.export.pipelines import record_of
from seqkeras.keras_pipeline import keras_pipeline
from seqkeras.models.never_generated import without
from seqkeras.runs import Reference
from seqkeras.values import BANNED_LOGIT

if TYPE_CHECKING:
    import keras

    from seqkeras.export.families import ExportPlan
    from seqkeras.export.run import Run
    from seqkeras.serving.pipelines.pipeline import Pipeline

TOLERANCE = 1e-4  # beside numbers of 1 and more, relative to the largest
OF_SMALL = 1e-2  # relative to the largest number, however small that is
IN_HALF = {"bfloat16": 0.1, "float16": 0.02}  # in place of both, for what was called in these
MOST_CALLED = 8  # examples, where the model is called for each


@dataclasses.dataclass(frozen=True)
class Difference:
    """The distance of outputs from the reference."""

    relative: float  # the largest difference, relative to the largest number of the reference
    problem: str = ""  # what is wrong, in words; "" if nothing is


@dataclasses.dataclass(frozen=True)
class UserCall:
    """The outputs of the user's own call of a model, with which others' are compared."""

    reference: Reference
    axes: Mapping  # name of an output -> sizes, and names of open axes, after the rows
    trained_in: str  # the policies in which the model was trained, in words

    def difference(self, answers: Sequence[Mapping[str, np.ndarray]]) -> Difference:
        """Return the `Difference` between the reference and outputs of the first examples."""
        pairs = {}
        for outputs, expected in zip(answers, self.reference.examples, strict=False):
            if missing := [name for name in outputs if name not in expected]:
                gives = f"gives {', '.join(expected)}, and not {', '.join(missing)}"
                return Difference(np.inf, f"the user's call of the model {gives}")
            for name, actual in outputs.items():
                if len(actual) == len(expected[name]):  # else windows of a long text
                    pairs.setdefault(name, []).append((np.asarray(actual), expected[name]))
        if not pairs:
            return Difference(np.inf, "no example is read in one row, as the user's call reads it")
        differences = [
            difference_of(name, arrays, self.axes[name], self.trained_in)
            for name, arrays in pairs.items()
        ]
        return max(differences, key=lambda worst: (bool(worst.problem), worst.relative))


def user_call(
    run: Run, plan: ExportPlan, calls: Sequence[Any], model: keras.Model
) -> UserCall | None:
    """Return the `UserCall` of a run; without a reference, one by the model's own names, or None.

    Calls are those of the first examples: the arrays that the pipeline feeds, and the outputs.
    """
    reference = run.reference
    if reference is None and plan.own_call is not None:
        feeds = [feed for feed, _ in calls[:MOST_CALLED]]
        reference = Reference.by_names(model, plan.own_call, feeds, run.record.binding)
    if reference is None:
        return None
    axes = {spec.name: spec.shape[1:] for spec in plan.graphs["model"].outputs}
    return UserCall(reference, axes, run.trained_in)


def calls_of(run: Run, plan: ExportPlan) -> list[Any]:
    """Return the feed and the outputs of the first call in Keras for each of the first inputs."""
    calls = []
    pipeline = keras_pipeline(
        run.folder, plan.graphs, plan.fields, lambda role, *call: calls.append(call)
    )
    return first_calls(run.inputs[:MOST_CALLED], pipeline, calls)


def first_calls(inputs: Sequence[Any], pipeline: Pipeline, calls: list[Any]) -> list[Any]:
    """Return the feed and the outputs of a pipeline's first call for each input, alone.

    The pipeline's runtime appends (feed, outputs) to the list `calls`.
    """
    firsts = []
    for value in inputs:
        calls.clear()
        pipeline([value], **record_of(pipeline.manifest.pipeline).expected_by)
        firsts.append(calls[0])
    return firsts


def log_probs_difference(run: Run, answers: Sequence[np.ndarray], begin: int = 0) -> Difference:
    """Return the `Difference` between (T, V) log-probabilities and the logits of the user's call.

    They begin at the place `begin` of the reference's.
    """
    never = getattr(run.model, "never_generated", ())
    pairs = []
    for actual, outputs in zip(answers, run.reference.examples, strict=False):
        logits = next(iter(outputs.values()))[:, begin:]
        expected = ops.convert_to_numpy(ops.log_softmax(without(logits, never)))
        pairs.append((actual[np.newaxis], expected))
    return difference_of("log_probs", pairs, ("length", None), run.trained_in)


def difference_of(
    name: str, pairs: Sequence[tuple[np.ndarray, np.ndarray]], axes: Sequence[Any], trained_in: Any
) -> Difference:
    """Return the `Difference` of one output.

    Args:
        pairs: (actual, expected) arrays of each example, the first axis rows.
        axes: the others: sizes, and names of open axes, along which the longer array is cut.
    """
    differences, largest = [0.0], [0.0]
    for actual, expected in pairs:
        sizes = [*zip(actual.shape[1:], expected.shape[1:], strict=False)]
        if actual.ndim != expected.ndim or any(
            one != other and not isinstance(axis, str)
            for (one, other), axis in zip(sizes, axes, strict=False)
        ):
            shapes = f"{expected.shape} in the user's call of the model and {actual.shape} here"
            return Difference(np.inf, f"{name} has the shape {shapes}")
        common = (slice(None), *(slice(min(pair)) for pair in sizes))
        actual, expected = (array[common].astype("float64") for array in (actual, expected))
        if np.isnan(expected).any():
            return Difference(np.inf, f"{name} is NaN in the user's call of the model")
        may_be = expected > BANNED_LOGIT / 2
        if not np.array_equal(may_be, actual > BANNED_LOGIT / 2):
            differences.append(np.inf)
        differences.append(np.max(np.abs(actual - expected), where=may_be, initial=0))
        largest.append(np.max(np.abs(expected), where=may_be, initial=0))
    absolute, scale = float(np.max(differences)), float(np.max(largest))
    relative = absolute / scale if scale else absolute
    if _is_same(absolute, scale, trained_in):
        return Difference(relative)
    return Difference(
        relative if np.isfinite(relative) else np.inf,
        f"{name} differs by {relative:.2g} of its largest number from the user's call of the model",
    )


def _is_same(absolute, scale, trained_in):
    half = next((name for name in IN_HALF if name in trained_in), None)
    if half is not None:
        return absolute <= IN_HALF[half] * scale
    return absolute <= TOLERANCE * max(1.0, scale) and absolute <= OF_SMALL * scale


def plan_by_numbers(
    run: Run, bindings: Sequence[Mapping[str, Any]], plan: Callable[..., ExportPlan]
) -> ExportPlan:
    """Return the plan, made by `plan`, of the only binding that answers as the user's call does.

    A ValueError says that no binding, or more than one, has the numbers of the reference.
    """
    plans = {}
    for index, binding in enumerate(bindings):
        try:
            made = plan(binding)
            calls = calls_of(run, made)
        except Exception:  # the model's own code can raise anything
            continue
        call = user_call(run, made, calls, run.model)
        if not call.difference([outputs for _, outputs in calls]).problem:
            plans[index] = made
    if len(plans) == 1:
        return next(iter(plans.values()))
    fault = "several orders of its inputs give" if plans else "no order of its inputs gives"
    raise ValueError(
        f"a {type(run.model).__name__} has inputs that no name tells apart, and {fault} the "
        "numbers of call: name each by binding={'window': 'past'}, our name to the model's; call "
        "must be of the validation examples, in their order."
    )

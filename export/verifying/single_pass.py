"""Models that answer in a single pass: the pipeline, Keras and the SavedModel agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.export.exported import ON_ARRAYS
from seqkeras.export.pipelines import record_of
from seqkeras.export.proof import MOST_CALLED, first_calls, user_call
from seqkeras.export.verifying import parity
from seqkeras.export.verifying.streams import compare_streams
from seqkeras.export.verifying.strings import answers_on_strings, compare_on_strings
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.families import ExportPlan
    from seqkeras.export.run import Run


def verify_single_pass(
    run: Run, plan: ExportPlan, exported: Exported
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """See `seqkeras.export.verifying.verify`."""
    manifest = exported.manifest
    runs = []
    runtime = Runtime(observe=lambda role, inputs, outputs: runs.append((inputs, outputs)))
    pipeline = PIPELINES[manifest.pipeline](exported.folder, manifest, runtime)
    inputs = run.inputs[: parity.EXAMPLES]
    record = record_of(manifest.pipeline)
    served = pipeline(inputs, **record.expected_by)
    comparison = parity.Comparison(len(inputs))
    saved_model = exported.signatures(ON_ARRAYS).get("serving_default")
    # The user's call of the first examples shows that the trace is the model; without it nothing is
    # traced.
    shown = run.reference is not None or plan.own_call is not None
    in_keras = parity.in_keras if shown else parity.eagerly
    function = in_keras(plan.graphs["model"])
    for feed, outputs in runs:
        expected = function(**feed)
        answers = {"onnx": outputs}
        if saved_model is not None:
            answers["saved_model"] = saved_model(**parity.tensors(feed))
        for name, given in answers.items():
            for output in outputs:
                comparison.compare_numbers(
                    name, np.asarray(given[output]), np.asarray(expected[output])
                )
    rows = [
        {name: value[row] for name, value in feed.items()}
        for feed, _ in runs
        for row in range(len(next(iter(feed.values()))))
    ]
    most = len(run.reference.examples) if run.reference else MOST_CALLED
    calls = first_calls(run.inputs[:most], pipeline, runs)
    call = user_call(run, plan, calls, run.model)
    if call is not None:
        backends = {"keras": lambda feed, _: function(**feed), "onnx": lambda _, outputs: outputs}
        if saved_model is not None:
            backends["saved_model"] = lambda feed, _: saved_model(**parity.tensors(feed))
        for name, answered in backends.items():
            compared = [_of(outputs, answered(feed, outputs)) for feed, outputs in calls]
            comparison.compare_call(name, call.difference(compared), call.reference)
    compare_streams(comparison, plan, exported, rows, function)
    parity.compare_attention(comparison, plan, exported, inputs)
    fields = getattr(pipeline, "fields", ())
    compare_on_strings(
        comparison,
        answers_on_strings(exported, inputs, fields),
        inputs,
        lambda row, outputs: record.expected(outputs, served[row], pipeline, inputs[row]),
    )
    return comparison.finish(), rows


def _of(served, answered):
    """Return the outputs that the pipeline reads."""
    return {name: np.asarray(answered[name]) for name in served}

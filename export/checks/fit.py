"""The list of checks of a whole run, `CHECKS`, before anything is traced: its record, settings,
limits, ids, tokenizers and examples, against the model and each other.

The pipeline that will serve the bundle is opened on the graphs' future inputs and outputs, so its
own checks run here too.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from seqkeras.export.checks import ExportError
from seqkeras.export.checks.given import MOST_EXAMPLES
from seqkeras.export.checks.outputs import padding, texts
from seqkeras.export.families import ExportPlan
from seqkeras.export.families.calling import axes_of
from seqkeras.export.feeds import LANGUAGE_MODEL, NUMBERS, SINGLE_PASS
from seqkeras.export.pipelines import PipelineRecord, record_of
from seqkeras.export.run import Run
from seqkeras.export.scores import wrong_target
from seqkeras.keras_pipeline import keras_pipeline
from seqkeras.models.limits import (
    position_problems,
    room_for_tokens,
    vocabulary_problems,
    weight_problems,
)
from seqkeras.runs import RECORD, VALIDATION
from seqkeras.serving.manifest import MANIFEST, PIPELINE_TEXTS, BundleError, Refusal
from seqkeras.serving.opening import UnexpectedGraph
from seqkeras.serving.pipelines.pipeline import Pipeline
from seqkeras.serving.text import CharacterTable
from seqkeras.serving.text.vocabularies import EOS
from seqkeras.tokenizers.special import end_problem

# How errors name a run's record, as the beginning of a reason, and its real inputs.
FILES = f"{RECORD}: ", VALIDATION
ARGUMENTS = "", "validation"  # of `save_run`


@dataclasses.dataclass(frozen=True)
class Checked:
    """The subject of `CHECKS`: a run, its plan, and its pipeline on Keras."""

    run: Run
    plan: ExportPlan
    pipeline_record: PipelineRecord
    feeds: Mapping[str, Any]
    names: tuple  # `FILES` or `ARGUMENTS`
    calls: list = dataclasses.field(default_factory=list)  # (inputs, outputs) of the last ones

    @functools.cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline of the future graphs, which calls Keras, or a BundleError."""
        fields = self.plan.fields | {"decoding": self._known_decoding()}
        return keras_pipeline(
            self.run.folder, self.plan.graphs, fields, lambda role, *call: self.calls.append(call)
        )

    def answered(self, inputs: Any) -> Any:
        """Return the model's calls with which the pipeline answers inputs."""
        self.calls.clear()
        self.pipeline(inputs)
        return [*self.calls]

    def _known_decoding(self):
        """Return the decoding with ids and beams that there can be, so that a pipeline opens.

        The pipeline then finds other problems; `ids` finds those of ids and beams.
        """
        decoding = self.run.decoding
        if PIPELINE_TEXTS[self.run.record.pipeline].generated is None:
            return decoding
        size = _decoder_size(self.run.model)
        known = {name: min(getattr(decoding, name), size - 1) for name in ("start_id", "end_id")}
        return dataclasses.replace(decoding, **known, num_beams=min(decoding.num_beams, size))


def require_fit(run: Run, plan: ExportPlan) -> None:
    """Raise an ExportError, with every reason, unless a run's bundle can be made and served."""
    if reasons := reasons_against(run, plan, FILES):
        said = "; ".join(reasons)
        is_served = plan.kind == record_of(run.record.pipeline).model_kind
        raise ExportError(f"{run.folder}: {said}. Save the run again." if is_served else f"{said}.")


def reasons_against(run: Run, plan: ExportPlan, names: tuple[str, str]) -> list[str]:
    """Return every reason why no bundle can be made of a run and be served."""
    pipeline_record = record_of(run.record.pipeline)
    checked = Checked(run, plan, pipeline_record, pipeline_record.feeds_of(run.tokenizers), names)
    for checks in CHECKS:
        reasons = dict.fromkeys(reason for check in checks for reason in check(checked))
        if reasons:
            return [*reasons]
    return []


def kind(checked: Checked) -> Iterator[str]:
    """Yield a reason if the pipeline serves models of another kind."""
    served, given = checked.pipeline_record.model_kind, checked.plan.kind
    if given != served:
        yield (
            f"{checked.run.record.pipeline} serves a model of kind {served!r}; a "
            f"{type(checked.run.model).__name__} is one of kind {given!r}"
        )


def record(checked: Checked) -> Iterator[str]:
    """Yield what is wrong with the record: limits, ids, settings, and the model's inputs."""
    settings = checked.pipeline_record.setting_problems(checked.run.record.settings)
    for reasons in (_lengths(checked), _ids(checked), settings, _inputs(checked)):
        yield from (f"{checked.names[0]}{reason}" for reason in reasons)


def weights(checked: Checked) -> list[str]:
    """Return the first weights that are not finite."""
    return weight_problems(checked.run.model)


def answers(checked: Checked) -> list[str]:
    """Return why the pipeline can not be opened, or which of the real inputs it refuses."""
    try:
        pipeline = checked.pipeline
    except BundleError as error:
        return [_against_run(error, checked)]
    return _examples(checked, pipeline)


# Each group of checks runs where the groups before it gave no reason.
CHECKS = (kind,), (record, weights, answers), (texts,), (padding,)


def _lengths(checked):
    limits, model, plan = checked.run.limits, checked.run.model, checked.plan
    if plan.kind != LANGUAGE_MODEL:
        yield from position_problems(model, limits.source_length)
    if plan.kind == SINGLE_PASS:
        return
    room = room_for_tokens(model)
    if room is not None and limits.target_length > room:
        yield (
            f"limits.target_length must be at most the model's room for tokens, {room}; received "
            f"{limits.target_length}"
        )
    if plan.kind == LANGUAGE_MODEL and limits.target_length < 2:
        yield (
            "limits.target_length must be at least 2, a prompt and what follows; received "
            f"{limits.target_length}"
        )


def _ids(checked):
    """Yield what is wrong with ids, beams and the sizes of vocabularies."""
    run, model = checked.run, checked.run.model
    yield from vocabulary_problems(model, run.tokenizers)
    role = PIPELINE_TEXTS[run.record.pipeline].generated
    if role is None:
        return
    size = _decoder_size(model)
    if run.decoding.num_beams > size:
        yield (
            f"decoding.num_beams must be at most the vocabulary's size, {size}; received "
            f"{run.decoding.num_beams}"
        )
    is_table = isinstance(run.tokenizers.get(role), CharacterTable)
    for name in ("start_id", "end_id"):
        token_id = getattr(run.decoding, name)
        if name not in run.record.decoding and not is_table:
            yield f"decoding.{name} is missing, the id that {name[:-3]}s a text"
        elif not 0 <= token_id < size:
            yield f"decoding.{name} must be an id, from 0 to {size - 1}; received {token_id}"
    if problem := end_problem(model, run.decoding.end_id):
        yield f"decoding.{problem}"
    if is_table and run.decoding.end_id != EOS:
        yield (
            f"decoding.end_id must be {EOS}, <eos>, where a table of characters ends a text; "
            f"received {run.decoding.end_id}"
        )


def _decoder_size(model):
    return getattr(model, "target_vocab_size", None) or model.vocab_size


def _inputs(checked):
    """Yield where an input of the model differs from the pipeline's feed of the same name."""
    pipeline, feeds, graphs = checked.run.record.pipeline, checked.feeds, checked.plan.graphs
    for spec in graphs["model"].inputs if "model" in graphs else ():
        dtype, axes = feeds.get(spec.name, (spec.dtype, spec.shape))
        if NUMBERS in feeds.values():  # the pipeline refuses the shapes that it does not take
            if spec.dtype != dtype:
                yield (
                    f"{pipeline} without a tokenizer feeds {spec.name} as {dtype}; "
                    f"the model takes {spec.dtype}: give save_run the tokenizer of its ids"
                )
            elif axes == NUMBERS[1]:
                yield from _fixed_length(spec, checked.run.limits)
            continue
        closed = [size for size, axis in zip(spec.shape, axes) if type(size) is not type(axis)]
        if spec.dtype != dtype or len(spec.shape) != len(axes) or closed:
            yield (
                f"{pipeline} feeds {spec.name} as {dtype} ({axes_of(axes)}); the model takes "
                f"{spec.dtype} ({axes_of(spec.shape)}): begin it with an input of open axes"
            )


def _fixed_length(spec, limits):
    """Yield a reason if the model fixes the length of its arrays and the limit differs."""
    length = spec.shape[1] if len(spec.shape) > 1 else None
    if isinstance(length, int) and length != limits.source_length:
        way_out = f"give limits={{'source_length': {length}}}"
        if len(spec.shape) > 2:
            way_out += ", or begin the model with an input of open length"
        yield (
            f"limits.source_length must be {length}, the length of the model's {spec.name}; "
            f"received {limits.source_length}: {way_out}"
        )


def _against_run(error, checked):
    """Return a pipeline's refusal of a bundle, as a reason against the run."""
    begin, pipeline = checked.names[0], checked.run.record.pipeline
    said = "; ".join(error.reasons).rstrip(".")
    if isinstance(error, UnexpectedGraph):
        way_out = (
            f"; {pipeline} feeds {', '.join(checked.feeds)}: name the model's inputs so, or give "
            "save_run binding= or call=, which tell what each of them is"
        )
        return (
            f"{begin}{pipeline} can not serve the model: {said}{way_out if checked.feeds else ''}"
        )
    subject = "" if error.subject in (None, MANIFEST) else f"{error.subject}: "
    return f"{begin}{subject}{said}"


def _examples(checked, pipeline):
    run, name = checked.run, checked.names[1]
    needed = ("text" if "source" in run.tokenizers else "input"), "target"
    reasons = [
        f"{name}[{index}]: must have {' and '.join(needed)}"
        for index, example in enumerate(run.examples)
        if checked.pipeline_record.needs_targets and not {*needed} <= set(example)
    ]
    for index, (value, example) in enumerate(zip(run.inputs, run.examples, strict=True)):
        try:
            row = pipeline.encode(value, name=f"{name}[{index}]")
        except ValueError as error:
            said = error.reasons if isinstance(error, Refusal) else [str(error)]
            reasons.append("; ".join(said).rstrip("."))
            continue
        wrong = wrong_target(run.record.pipeline, run.record.settings, example, row)
        reasons += [f"{name}[{index}]: {reason}" for reason in wrong]
    more = len(reasons) - MOST_EXAMPLES
    return reasons[:MOST_EXAMPLES] + ([f"{name}: {more} more like these"] if more > 0 else [])

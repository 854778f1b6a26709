"""Check a whole run before anything is traced: its record, settings, limits, ids, tokenizers and
examples, against the model and each other.

The pipeline that will serve the bundle is opened on the graphs' future inputs and outputs, so its
own checks run here too.
"""

import dataclasses

from seqkeras.export.about import about
from seqkeras.export.checks.behaviour import problems_of_padding, problems_of_texts
from seqkeras.export.checks.given import MOST_EXAMPLES
from seqkeras.export.families.calling import axes_of
from seqkeras.export.feeds import LANGUAGE_MODEL, NUMBERS, SINGLE_PASS
from seqkeras.export.keras_pipeline import keras_pipeline
from seqkeras.export.pipelines import record_of
from seqkeras.export.scores import wrong_target
from seqkeras.models.limits import position_problems, vocabulary_problems, weight_problems
from seqkeras.runs import RECORD, VALIDATION
from seqkeras.serving.manifest import MANIFEST, PIPELINE_TEXTS, BundleError, Refusal
from seqkeras.serving.opening import UnexpectedGraph
from seqkeras.serving.text import CharacterTable
from seqkeras.serving.text.vocabularies import EOS
from seqkeras.tokenizers.special import end_problem


class ExportError(ValueError):
    """The bundle can not be made; the message names a way out."""


@dataclasses.dataclass(frozen=True)
class Names:
    """How error messages name the parts of a run.

    Args:
        record: prefix of a reason about settings, limits or tokenizers.
        examples: the real inputs.
    """

    record: str
    examples: str


FILES = Names(f"{RECORD}: ", VALIDATION)
ARGUMENTS = Names("", "validation")  # of `save_run`


def require_fit(run, plan):
    """Raise an ExportError, with every reason, unless a bundle can be made of a run and be served.

    Args:
        run: a `Run`.
        plan: its model's `ExportPlan`.
    """
    if reasons := [*wrong_kind(run, plan)]:
        raise ExportError(f"{'; '.join(reasons)}.")
    if reasons := reasons_against(run, plan, FILES):
        raise ExportError(f"{run.folder}: {'; '.join(reasons)}. Save the run again.")


def wrong_kind(run, plan):
    """Yield what is wrong if the pipeline serves models of another kind."""
    pipeline, model = run.record.pipeline, run.model
    expected = record_of(pipeline).model_kind
    if plan.kind != expected:
        yield (
            f"{pipeline} serves a model of kind {expected!r}; a {type(model).__name__} is one of "
            f"kind {plan.kind!r}"
        )


def reasons_against(run, plan, names):
    """Return every reason why no bundle can be made of a run and be served, as a list.

    Args:
        run: a `Run`.
        plan: its model's `ExportPlan`, of the kind that the pipeline serves.
        names: `Names`.
    """
    record = record_of(run.record.pipeline)
    reasons = [*_lengths(run, plan), *_tokens(run)]
    reasons += record.setting_problems(run.record.settings)
    reasons += _inputs(run, plan)
    reasons = [f"{names.record}{reason}" for reason in reasons] + [*weight_problems(run.model)]
    fields = about(run, plan, run.folder.name) | {"decoding": _with_known_ids(run)}
    try:
        calls = []
        pipeline = keras_pipeline(run.folder, plan, fields, lambda role, *call: calls.append(call))
    except BundleError as error:
        reasons.append(_against_run(error, run, names))
    else:
        reasons += _examples(run, pipeline, names.examples)
    if not reasons:
        reasons += problems_of_texts(run, plan)
    if not reasons:

        def answered(inputs):
            calls.clear()
            pipeline(inputs)
            return [*calls]

        reasons += problems_of_padding(run, plan, pipeline, answered, names.examples)
    return [*dict.fromkeys(reasons)]


def _lengths(run, plan):
    limits, model = run.limits, run.model
    if plan.kind != LANGUAGE_MODEL:
        yield from position_problems(model, limits.source_length)
    if plan.kind == SINGLE_PASS:
        return
    room = getattr(model, "max_length", None) or getattr(model, "sizes", {}).get("max_length")
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


def _tokens(run):
    """Yield what is wrong with ids, beams and the sizes of vocabularies."""
    model, tokenizers = run.model, run.tokenizers
    yield from vocabulary_problems(model, tokenizers)
    role = PIPELINE_TEXTS[run.record.pipeline].generated
    if role is None:
        return
    size = _decoder_size(model)
    if run.decoding.num_beams > size:
        yield (
            f"decoding.num_beams must be at most the vocabulary's size, {size}; received "
            f"{run.decoding.num_beams}"
        )
    is_table = isinstance(tokenizers.get(role), CharacterTable)
    for name in ("start_id", "end_id"):
        given = getattr(run.decoding, name)
        if name not in run.record.decoding and not is_table:
            yield f"decoding.{name} is missing, the id that {name[:-3]}s a text"
        elif not 0 <= given < size:
            yield f"decoding.{name} must be an id, from 0 to {size - 1}; received {given}"
    problem = end_problem(model, run.decoding.end_id)
    if problem:
        yield f"decoding.{problem}"
    if is_table and run.decoding.end_id != EOS:
        yield (
            f"decoding.end_id must be {EOS}, <eos>, where a table of characters ends a text; "
            f"received {run.decoding.end_id}"
        )


def _decoder_size(model):
    return getattr(model, "target_vocab_size", None) or model.vocab_size


def _with_known_ids(run):
    """Return the decoding with ids and beams that there can be, so that a pipeline opens.

    The pipeline then finds other problems; `_tokens` reports the ids and beams.
    """
    decoding = run.decoding
    if PIPELINE_TEXTS[run.record.pipeline].generated is None:
        return decoding
    size = _decoder_size(run.model)
    ids = {name: min(getattr(decoding, name), size - 1) for name in ("start_id", "end_id")}
    return dataclasses.replace(decoding, **ids, num_beams=min(decoding.num_beams, size))


def _inputs(run, plan):
    """Yield where an input of the model differs from the pipeline's feed of the same name."""
    feeds = record_of(run.record.pipeline).feeds_of(run.tokenizers)
    for spec in plan.graphs["model"].inputs if "model" in plan.graphs else ():
        dtype, axes = feeds.get(spec.name, (spec.dtype, spec.shape))
        if NUMBERS in feeds.values():  # the pipeline refuses the shapes that it does not take
            if spec.dtype != dtype:
                yield (
                    f"{run.record.pipeline} without a tokenizer feeds {spec.name} as {dtype}; "
                    f"the model takes {spec.dtype}: give save_run the tokenizer of its ids"
                )
            elif axes == NUMBERS[1]:
                yield from _fixed_length(spec, run.limits)
            continue
        closed = [own for own, axis in zip(spec.shape, axes) if type(own) is not type(axis)]
        if spec.dtype != dtype or len(spec.shape) != len(axes) or closed:
            yield (
                f"{run.record.pipeline} feeds {spec.name} as {dtype} ({axes_of(axes)}); the "
                f"model takes {spec.dtype} ({axes_of(spec.shape)}): begin it with an input of open "
                "axes"
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


def _against_run(error, run, names):
    """Return a pipeline's refusal of a bundle, as a reason against the run."""
    pipeline, said = run.record.pipeline, "; ".join(error.reasons).rstrip(".")
    if isinstance(error, UnexpectedGraph):
        feeds = record_of(pipeline).feeds_of(run.tokenizers)
        way_out = (
            f"; {pipeline} feeds {', '.join(feeds)}: name the model's inputs so, or give save_run "
            "binding= or call=, which tell what each of them is"
        )
        return f"{names.record}{pipeline} can not serve the model: {said}{way_out if feeds else ''}"
    subject = "" if error.subject in (None, MANIFEST) else f"{error.subject}: "
    return f"{names.record}{subject}{said}"


def _examples(run, pipeline, name):
    needed = ("text" if "source" in run.tokenizers else "input"), "target"
    found = [
        f"{name}[{place}]: must have {' and '.join(needed)}"
        for place, example in enumerate(run.examples)
        if record_of(run.record.pipeline).needs_targets and not {*needed} <= set(example)
    ]
    for place, value in enumerate(run.inputs):
        try:
            row = pipeline.encode(value, name=f"{name}[{place}]")
        except ValueError as error:
            reasons = error.reasons if isinstance(error, Refusal) else [str(error)]
            found.append("; ".join(reasons).rstrip("."))
            continue
        record, example = run.record, run.examples[place]
        wrong = wrong_target(record.pipeline, record.settings, example, row)
        found += [f"{name}[{place}]: {reason}" for reason in wrong]
    more = len(found) - MOST_EXAMPLES
    return found[:MOST_EXAMPLES] + ([f"{name}: {more} more like these"] if more > 0 else [])

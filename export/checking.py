"""A look at a whole run before anything is traced: its record, settings, limits, ids, tokenizers
and examples, against the model and each other.

What the pipeline would refuse of the bundle it refuses here: it is opened on what the graphs will
take and give, before there are any.
"""

import dataclasses
from types import SimpleNamespace

import keras
import numpy as np

from export.about import about
from export.families.calling import axes_of, reason_of
from export.families.single import INPUTS
from export.padding import changed_by_padding, same_rows
from export.pipelines import record_of
from export.pipelines.feeds import FRAMES, NUMBERS
from export.pipelines.record import LANGUAGE_MODEL, SINGLE_PASS
from export.scores import wrong_target
from export.signatures import to_trace
from seqkeras.run_checks import (
    MOST_EXAMPLES,
    most_tokens,
    positions_problem,
    vocabulary_problems,
    weight_problems,
)
from seqkeras.runs import RECORD, VALIDATION
from seqkeras.tokenizers.special import end_problem
from serving import pipelines
from serving.manifest import (
    MANIFEST,
    PIPELINE_TEXTS,
    BundleError,
    FileEntry,
    GraphFile,
    Manifest,
    Refusal,
)
from serving.opening import Runtime, UnexpectedGraph
from serving.pipelines.model import MASKED
from serving.text import CharacterTable
from serving.text.vocabularies import EOS

MOST_TOKENS = 2048  # that a model is tried with
MOST_PADDED = 64  # that it is tried with, with padding and without
PROBABILITIES = {"Softmax": "softmax", "Sigmoid": "sigmoid"}  # TensorFlow's operators, in words
HANDED_ON = ("Identity", "Reshape", "Cast", "Squeeze", "ExpandDims")


class ExportError(ValueError):
    """The bundle can not be made; the message names a way out."""


@dataclasses.dataclass(frozen=True)
class Names:
    """What reasons call the parts of a run.

    Args:
        record: what stands before a reason against settings, limits or tokenizers.
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
    """Every reason why no bundle can be made of a run and be served, as a list.

    Args:
        run: a `Run`.
        plan: its model's `ExportPlan`, of the kind that the pipeline serves.
        names: `Names`.
    """
    record = record_of(run.record.pipeline)
    reasons = [*_lengths(run, plan), *_tokens(run)]
    reasons += record.setting_problems(run.record.settings)
    reasons += _inputs(run, plan)
    reasons = [f"{names.record}{each}" for each in reasons] + [*weight_problems(run.model)]
    fields = about(run, plan, run.folder.name) | {"decoding": _with_known_ids(run)}
    try:
        calls = []
        pipeline = _pipeline(run.folder, plan, fields, lambda role, *call: calls.append(call))
    except BundleError as error:
        reasons.append(_against_run(error, run, names))
    else:
        reasons += _examples(run, pipeline, names.examples)
    if not reasons:
        reasons += _behaviour(run, plan)
    if not reasons:

        def answered(inputs):
            calls.clear()
            pipeline(inputs)
            return [*calls]

        reasons += _padding(run, plan, pipeline, answered, names.examples)
    return [*dict.fromkeys(reasons)]


def _lengths(run, plan):
    limits, model = run.limits, run.model
    most = most_tokens(model)
    if plan.kind != LANGUAGE_MODEL and most is not None and limits.source_length > most:
        yield positions_problem(limits, most)
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
    """What is wrong with ids, beams and the sizes of vocabularies."""
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
    """The decoding with ids and beams that there can be, so that a pipeline opens.

    It finds what else is wrong; what is wrong with these `_tokens` says.
    """
    decoding = run.decoding
    if PIPELINE_TEXTS[run.record.pipeline].generated is None:
        return decoding
    size = _decoder_size(run.model)
    ids = {name: min(getattr(decoding, name), size - 1) for name in ("start_id", "end_id")}
    return dataclasses.replace(decoding, **ids, num_beams=min(decoding.num_beams, size))


def _inputs(run, plan):
    """Where what the model takes is not what the pipeline feeds by that name."""
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
    """Where every array has the length that the model has fixed, and the limit is another."""
    length = spec.shape[1] if len(spec.shape) > 1 else None
    if isinstance(length, int) and length != limits.source_length:
        way_out = f"give limits={{'source_length': {length}}}"
        if len(spec.shape) > 2:
            way_out += ", or begin the model with an input of open length"
        yield (
            f"limits.source_length must be {length}, the length of the model's {spec.name}; "
            f"received {limits.source_length}: {way_out}"
        )


def _pipeline(folder, plan, fields, observe):
    """The pipeline of graphs that are not there yet; `observe` is as a `Runtime` takes it."""
    graphs = {
        role: GraphFile(f"onnx/{role}.onnx", tuple(each.inputs), tuple(each.outputs))
        for role, each in plan.graphs.items()
    }
    files = [*fields["tokenizers"].values(), *(each.file for each in graphs.values())]
    manifest = Manifest(
        graphs=graphs,
        saved_models={},
        files=dict.fromkeys(files, FileEntry(0, "0" * 64)),
        **fields,
    )
    return pipelines.PIPELINES[manifest.pipeline](
        folder, manifest, _Unmade(observe=observe, graphs=plan.graphs)
    )


@dataclasses.dataclass(frozen=True)
class _Unmade(Runtime):
    """A runtime of graphs that are not there: in their place Keras runs the plan's `graphs`."""

    graphs: dict = dataclasses.field(default_factory=dict)

    def external_files(self, model):
        return ()

    def session(self, model):
        graph = self.graphs[model.stem]

        def run(names, inputs):
            found = graph.function(**inputs)
            return [keras.ops.convert_to_numpy(found[name]) for name in names]

        return SimpleNamespace(
            run=run,
            get_providers=tuple,
            get_inputs=lambda: [_argument(each) for each in graph.inputs],
            get_outputs=lambda: [_argument(each) for each in graph.outputs],
        )


def _argument(spec):
    return SimpleNamespace(name=spec.name, type=spec.dtype, shape=spec.shape)


def _against_run(error, run, names):
    """What a pipeline says of a bundle, as a reason against the run."""
    pipeline, said = run.record.pipeline, "; ".join(error.reasons).rstrip(".")
    if isinstance(error, UnexpectedGraph):
        feeds = record_of(pipeline).feeds_of(run.tokenizers)
        way_out = f"; {pipeline} feeds {', '.join(feeds)}: name the model's inputs so"
        return f"{names.record}{pipeline} can not serve the model: {said}{way_out if feeds else ''}"
    subject = "" if error.subject in (None, MANIFEST) else f"{error.subject}: "
    return f"{names.record}{subject}{said}"


def _examples(run, pipeline, name):
    needed = ("text" if "source" in run.tokenizers else "input"), "target"
    found = [
        f"{name}[{place}]: must have {' and '.join(needed)}"
        for place, each in enumerate(run.examples)
        if record_of(run.record.pipeline).needs_targets and not {*needed} <= set(each)
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
        found += [f"{name}[{place}]: {each}" for each in wrong]
    more = len(found) - MOST_EXAMPLES
    return found[:MOST_EXAMPLES] + ([f"{name}: {more} more like these"] if more > 0 else [])


def _behaviour(run, plan):
    """What is wrong with the outputs of a model of another library for made-up tokens."""
    pipeline, model, tokenizers = run.record.pipeline, run.model, run.tokenizers
    if (
        not record_of(pipeline).feeds
        or isinstance(model, tuple(INPUTS))
        or "text" not in tokenizers
    ):
        return
    last = len(tokenizers["text"]) - 1
    longest = record_of(pipeline).row_length(run.limits, run.record.settings)
    graph, most = plan.graphs["model"], min(longest, MOST_TOKENS)
    whole = min(most, MOST_PADDED)
    some = 1 + np.arange((whole + 1) // 2) % last
    demands = {
        f"rows of {longest} tokens": lambda: _called(plan, np.ones(most, int)),
        f"every id of its tokenizer, from 0 to {last}": lambda: _called(plan, np.full(most, last)),
        "rows of any size in a graph": lambda: _activations(graph),
        f"rows of {len(some)} tokens": lambda: _called(plan, some),
        "rows with padding": lambda: _called(plan, some, whole - len(some)),
    }
    answers = []
    for demand, use in demands.items():
        try:
            answers.append(use())
        except Exception as error:  # whatever the model's own code raises
            yield f"the model must take {demand}; it says: {reason_of(error)}"
            return
    _, _, activations, alone, padded = answers
    for name in (spec.name for spec in graph.outputs):
        if not same_rows(alone[name], padded[name]):
            yield (
                f"the model's {name} changes with the padding behind a text: leave it out, by "
                "lengths, by padding_mask, or by Embedding(..., mask_zero=True)"
            )
    yield from _probabilities(run, activations, alone)


def _probabilities(run, activations, outputs):
    """Which outputs are probabilities and should be logits: name -> operator, name -> array."""
    record = run.record
    for name in record_of(record.pipeline).logits_among(record.settings, [*outputs]):
        if activations[name] in PROBABILITIES or _are_probabilities(outputs[name]):
            way_out = _without(run.model, PROBABILITIES.get(activations[name], "softmax"))
            yield (
                f"the model's {name} are probabilities, and {run.record.pipeline} makes them "
                f"of logits: {way_out}"
            )


def _padding(run, plan, pipeline, answered, name):
    """What changes with the padding behind an input; see `export.padding`."""
    feeds = record_of(run.record.pipeline).feeds_of(run.tokenizers)
    if "token_ids" in feeds and "text" in run.tokenizers:
        return  # `_behaviour` says it
    try:
        changed = changed_by_padding(run, plan, pipeline, answered)
        if feeds is FRAMES:
            [(_, outputs), *_] = answered(run.inputs[:1])
            yield from _probabilities(run, _activations(plan.graphs["model"]), outputs)
    except Exception as error:  # whatever the model's own code raises
        yield f"the model must take {name}; it says: {reason_of(error)}"
        return
    way_out = "leave it out by lengths"
    if NUMBERS in feeds.values():
        way_out += (
            " or padding_mask, or take neither: then inputs of one length alone share a batch"
        )
    for name in changed:
        yield f"the model's {name} changes with the padding behind an input: {way_out}"


def _without(model, activation):
    """How a user takes an activation off a model whose weights stay as they are."""
    ends = [
        layer.name
        for layer in model.layers
        if getattr(getattr(layer, "activation", None), "__name__", "") == activation
    ]
    text = f"leave out the {activation}, in training by from_logits=True of the loss"
    if len(ends) != 1:
        return text
    line = f"model.get_layer({ends[0]!r}).activation = keras.activations.linear"
    return f"{text}; {line} takes it off a trained model, whose weights stay"


def _activations(graph):
    """The TensorFlow operator that each output of a `Signature` comes from: name -> its type."""
    outputs = to_trace(graph.function, graph.inputs).get_concrete_function().structured_outputs
    return {name: _made_by(tensor.op) for name, tensor in outputs.items()}


def _made_by(operation):
    while operation.type in HANDED_ON:
        operation = operation.inputs[0].op
    return operation.type


def _are_probabilities(numbers):
    """Whether rows of numbers look like those of a softmax."""
    return bool((numbers >= 0).all() and np.allclose(numbers.sum(-1), 1, rtol=0, atol=1e-5))


def _called(plan, tokens, padding=0):
    """What a model gives for a row of tokens, padded behind, or two such choices: name -> array."""
    token_ids = np.pad(tokens, (0, padding))
    real = np.arange(len(token_ids)) < len(tokens)
    row = {
        "token_ids": token_ids,
        "lengths": np.array(len(tokens)),
        "padding_mask": real,
        "segment_ids": np.zeros_like(token_ids),
        MASKED: np.zeros(1, int),
    }
    feed = {}
    for spec in plan.graphs["model"].inputs:
        shape = [2 if size == "choices" else 1 for size in spec.shape]
        value = row[spec.name]
        feed[spec.name] = np.tile(value, shape[: len(shape) - value.ndim] + [1] * value.ndim)
    found = plan.graphs["model"].function(**feed)
    return {name: keras.ops.convert_to_numpy(each) for name, each in found.items()}

"""The contents of a run, read and checked before anything is traced or written."""

from __future__ import annotations

import dataclasses
import functools
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from seqkeras import files, runs
from seqkeras.decoding import Constraint
from seqkeras.export.about import about
from seqkeras.export.families import plan_export
from seqkeras.export.families.binding import AmbiguousInputs
from seqkeras.export.families.calling import build, reason_of
from seqkeras.export.families.inputs import candidates, first_that_works
from seqkeras.export.pipelines import record_of
from seqkeras.export.policies import in_float32, set_float32
from seqkeras.export.proof import plan_by_numbers
from seqkeras.folders import identity
from seqkeras.runs import Reference, RunError, RunRecord
from seqkeras.serving.manifest import (
    PIPELINE_TEXTS,
    DecodingDefaults,
    Limits,
    TensorSpec,
    TextPrefix,
)

if TYPE_CHECKING:
    from seqkeras.export.families import ExportPlan


@dataclasses.dataclass(frozen=True)
class Run:
    """A run, read from its folder."""

    folder: Path
    record: RunRecord  # limits, decoding and prefix are parts of it
    model: keras.Model  # in float32
    trained_in: str  # the policies in which the model was trained, in words; "" for float32
    tokenizers: dict  # role -> tokenizer
    limits: Limits
    decoding: DecodingDefaults
    prefix: TextPrefix | None
    takes: (
        Sequence[TensorSpec] | None
    )  # `TensorSpec`s of the model's inputs; None if the run does not name them
    examples: list  # real inputs, {"input": ...} or {"text": ..., "target": ...}
    inputs: list  # the same in the pipeline's form
    reference: Reference | None  # the outputs of the user's call of the model for these
    scores: dict  # what training measured

    @functools.cached_property
    def constraint(self) -> Constraint | None:
        """The `seqkeras.decoding.Constraint` of generated texts; None if any text is allowed.

        A RunError says that no text that matches the regular expression can be generated.
        """
        regex = self.decoding.regex
        role = PIPELINE_TEXTS[self.record.pipeline].generated
        if regex is None or role is None:
            return None
        tokenizer = self.tokenizers[role]
        size = getattr(self.model, "target_vocab_size", getattr(self.model, "vocab_size", None))
        try:
            allowed = Constraint.of_regex(regex, tokenizer, self.decoding.end_id, size)
        except ValueError as error:
            raise _of_regex(str(error)) from error
        if allowed.shortest > self.limits.target_length:
            raise _of_regex(
                f"the shortest text that it allows has {allowed.shortest} tokens with <eos>; "
                f"limits.target_length is {self.limits.target_length}."
            )
        return allowed

    def plan(
        self, attention_heads: bool = False, stream: bool = False, **searches: Any
    ) -> ExportPlan:
        """Return what is exported of the model: an `seqkeras.export.families.ExportPlan`.

        Inputs that no name tells apart are bound as the numbers of the reference have it; what is
        raised: see `plan_export`. Searches are `n_best` and `sampling`.
        """
        pipeline = record_of(self.record.pipeline)

        def plan(binding):
            made = plan_export(
                self.model,
                self.takes,
                attention_heads,
                pipeline.feeds_of(self.tokenizers),
                pipeline.vectors,
                binding,
                by_numbers=self.reference is not None,
                max_length=self.limits.target_length,
                decoding=self.decoding,
                constraint=self.constraint,
                stream=stream,
                **searches,
            )
            return dataclasses.replace(made, fields=about(self, made.state))

        try:
            return plan(self.record.binding)
        except AmbiguousInputs as error:
            if self.reference is None:
                raise
            return plan_by_numbers(self, error.bindings, plan)


def _of_regex(reason):
    return RunError(f"decoding.regex: {reason}", subject=runs.RECORD)


def read_run(folder: Path) -> Run:
    """Return the run in a folder; a RunError says why it can not be used."""
    begun = identity(folder / runs.RECORD)
    record = RunRecord.read(folder)
    parsed = record.parse(folder / runs.RECORD)
    feeds = record_of(record.pipeline).feeds_of(record.tokenizers)
    model, policies = _load_model(folder / runs.MODEL, feeds, parsed.inputs, record.binding)
    examples = _read_examples(folder / runs.VALIDATION)
    run = Run(
        folder=folder,
        record=record,
        limits=parsed.limits,
        decoding=parsed.decoding,
        prefix=parsed.text_prefix,
        takes=None if parsed.inputs is None else list(parsed.inputs),
        examples=examples,
        inputs=[example.get("input", example.get("text")) for example in examples],
        reference=Reference.read(folder),
        scores=_read_json(folder / runs.SCORES),
        tokenizers=record.read_tokenizers(folder),
        model=model,
        trained_in=" and ".join(sorted(policies)),
    )
    if identity(folder / runs.RECORD) != begun:  # replacing a run removes its record first
        raise RunError(
            "was replaced while it was read",
            where=folder,
            advice="Export it when training has ended.",
        )
    return run


_LACKS_WEIGHTS = "cannot be built automatically"  # Keras's warning


def _load_model(path, feeds, inputs, binding):
    """Return the model with its weights, and the names of its policies that were not float32.

    Optimizer, losses and metrics are not loaded: export does not need them, and only the training
        script may know their classes.

    Keras loads a subclass of `keras.Model` whose `call` requires several arguments without weights,
    with a warning only; export calls such a subclass before its weights are loaded.
    """
    try:
        with in_float32() as policies:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = keras.models.load_model(path, compile=False)
            policies |= set_float32(model)
            later = [warning for warning in caught if _LACKS_WEIGHTS in str(warning.message)]
            for warning in caught:
                if warning not in later:
                    warnings.warn(warning.message, stacklevel=2)
            if later:
                possible = [(inputs, binding)] if inputs else candidates(model, feeds, binding)
                first_that_works(possible, lambda one: build(model, *one))
                model.load_weights(path)
        return model, policies
    except Exception as error:  # the model's own code can raise anything
        reason = reason_of(error)
        raise RunError(
            f"not a model that Keras can load: {reason}",
            where=path,
            advice="Train again, or name the module of its classes by --import.",
        ) from error


def _read_examples(path):
    """Return the run's real inputs, with their targets if there are any."""
    examples = _read_json(path)
    if not runs.are_examples(examples):
        raise RunError(f"must be {runs.EXAMPLES}", where=path, advice=runs.TRAIN_AGAIN)
    try:
        examples = runs.with_arrays(examples, path.parent)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        reason, file = f"can not be read: {error}", path.with_name(runs.ARRAYS)
        raise RunError(reason, where=file, advice=runs.TRAIN_AGAIN) from error
    return [_with_tuples(example) for example in examples]


def _with_tuples(example):
    """Return an example with tuples for pairs of texts and for words; JSON stores lists."""
    parts = example.get("input")
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        return {**example, "input": tuple(parts)}
    return example


def _read_json(path):
    try:
        return files.read_json(path)
    except (OSError, ValueError) as error:
        raise RunError(f"can not be read: {error}", where=path, advice=runs.TRAIN_AGAIN) from error

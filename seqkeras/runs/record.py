"""run.json, the record of a run: what the bundle's manifest will say of it."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np

from seqkeras import files
from seqkeras.serving.manifest import (
    PIPELINE_TEXTS,
    DecodingDefaults,
    Limits,
    Refusal,
    TensorSpec,
    TextPrefix,
)
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.text import Pattern, Tokenizer

OPTIONS = "options.json"
"""The options of `seqkeras train`, the first file of a run."""
RECORD = "run.json"
"""The record of a run, `RunRecord`, its last file."""
EVALUATION = "evaluation.json"
"""The `evaluation` of the record, as a file of a bundle."""
RUNS = "runs"  # the setting that names the folders of several tasks' runs
TRAIN_AGAIN = "Train again."
"""The way out that errors name where a run is damaged."""
TOKENIZERS = {"source": "tokenizer/source.json", "target": "tokenizer/target.json"}


class RunError(Refusal):
    """A run folder that can not be used; the message names a way out.

    Args:
        reasons, where, subject, advice: see `seqkeras.serving.manifest.Refusal`.

    Example:
        >>> from seqkeras.runs import RunRecord
        >>> RunRecord.read("runs/missing")
        Traceback (most recent call last):
            ...
        seqkeras.runs.record.RunError: runs/missing: no such run folder; make one of your model...
    """


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """The content of `run.json`.

    Args:
        task: what was trained, as in `seqkeras train TASK`.
        pipeline: the class of `seqkeras.serving.pipelines` that will serve the model.
        limits, decoding, text_prefix, tokenizers, settings: see `seqkeras.serving.manifest`;
            `seqkeras.serving.pipelines` lists the settings of each pipeline.
        inputs: name -> [dtype, shape] of the model's inputs; None if export can infer them.
        binding: name of an input -> its place in the model's own call, where that has another name
            or none: a key, the name of a `keras.Input`, an index, or a path of these.
        evaluation: options of the task by which `seqkeras train evaluate` reads a file and
            scores the answers, name -> value.

    Example:
        >>> from seqkeras.runs import RunRecord
        >>> limits = {"source_length": 64}
        >>> record = RunRecord("own", "Classify", limits, {}, text_prefix=None, tokenizers={})
        >>> record.write(".")
        >>> RunRecord.read(".") == record, record.parse(".").limits
        (True, Limits(source_length=64, target_length=1))
    """

    task: str
    pipeline: str
    limits: dict
    decoding: dict
    text_prefix: dict | None
    tokenizers: dict = dataclasses.field(default_factory=lambda: dict(TOKENIZERS))
    settings: dict = dataclasses.field(default_factory=dict)
    inputs: dict | None = None
    binding: dict = dataclasses.field(default_factory=dict)
    evaluation: dict = dataclasses.field(default_factory=dict)

    def write(self, folder: Path | str) -> None:
        """Write run.json into a run's folder, whole or not at all.

        Args:
            folder: the run's folder, which exists.

        Raises:
            OSError: if it can not be written.
        """
        files.write_json(Path(folder) / RECORD, dataclasses.asdict(self))

    def parse(self, where: Path | str) -> "Parsed":
        """Return the parts that the manifest has classes for, as a `Parsed`.

        Args:
            where: the owner of the record, for errors.

        Raises:
            RunError: with every reason, if they are invalid.
        """
        self.require_one(where)
        reasons = []
        if self.pipeline not in PIPELINE_TEXTS:
            reasons.append(
                f"pipeline must be {', '.join(PIPELINE_TEXTS)}; received {self.pipeline!r}"
            )
        parts = {
            "limits": self.limits,
            "decoding": self.decoding,
            "text_prefix": self.text_prefix,
            "inputs": _specs(self.inputs),
        }
        parsed = parse_fields(Parsed, parts, "", reasons)
        if not reasons:
            reasons = [*Parsed(**parsed).problems(), *_binding_problems(self.binding)]
        if reasons:
            raise RunError(*reasons, where=where)
        return Parsed(**parsed)

    def require_one(self, where: Path | str) -> None:
        """Refuse a folder that holds the runs of several tasks.

        Args:
            where: the owner of the record, for errors.

        Raises:
            RunError: if it does; the message names the runs.
        """
        if RUNS in self.settings:
            runs = ", ".join(self.settings[RUNS])
            raise RunError(f"{where}: holds the runs of several tasks; choose one: {runs}.")

    def read_tokenizers(self, folder: Path | str) -> dict[str, Tokenizer]:
        """Return a dictionary: role -> tokenizer of the run.

        Raises:
            RunError: if one of them is damaged.
        """
        from seqkeras.serving.text import read_tokenizer  # with the tokenizers' libraries

        tokenizers = {}
        for role, path in self.tokenizers.items():
            try:
                tokenizers[role] = read_tokenizer(Path(folder) / path)
            except (OSError, ValueError) as error:
                raise RunError(
                    f"{path} can not be used: {error}", where=folder, advice=TRAIN_AGAIN
                ) from error
        return tokenizers

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Return the record of a finished run.

        Raises:
            RunError: if the folder holds no finished run.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise RunError(f"{folder}: no such run folder; {_way_to_make(folder)}.")
        if (folder / "manifest.json").is_file():
            raise RunError(f"{folder}: is a bundle; the order is: seqkeras export RUN BUNDLE.")
        if not (folder / RECORD).is_file() and not (folder / OPTIONS).is_file():
            raise RunError(f"{folder}: no run folder, {RECORD} is missing; {_way_to_make('RUN')}.")
        if not (folder / RECORD).is_file():
            raise RunError(
                f"{folder}: not a finished run, {RECORD} is missing; the training command that "
                "began it goes on where it was."
            )
        reasons = []
        try:
            content = files.read_json(folder / RECORD)
            fields = parse_fields(cls, content, "", reasons)
        except ValueError as error:
            reasons = [str(error)]
        if reasons:
            raise RunError(
                *reasons, where=folder / RECORD, subject="not a run record", advice=TRAIN_AGAIN
            )
        return cls(**fields)


@dataclasses.dataclass(frozen=True)
class Parsed:
    """Parts of a run record in the manifest's classes."""

    limits: Limits
    decoding: DecodingDefaults
    text_prefix: TextPrefix | None
    inputs: tuple[TensorSpec, ...] | None

    def problems(self) -> Iterator[str]:
        """Yield what is wrong."""
        values = dataclasses.asdict(self.limits) | {"num_beams": self.decoding.num_beams}
        for name, value in values.items():
            if not 1 <= value < 2**31:
                part = "decoding" if name == "num_beams" else "limits"
                bound = "at least 1" if value < 1 else f"under {2**31}"
                yield f"{part}.{name} must be {bound}; received {value}"
        if not -10 <= self.decoding.length_penalty <= 10:
            yield (
                "decoding.length_penalty must be a number from -10 to 10; received "
                f"{self.decoding.length_penalty}"
            )
        if self.decoding.regex is not None:
            try:
                Pattern.of_expression(self.decoding.regex)
            except ValueError as error:
                yield f"decoding.regex: {str(error).rstrip('.')}"
        for spec in self.inputs or ():
            try:
                np.dtype(spec.dtype)
            except TypeError:
                yield f"inputs.{spec.name} must have a type of NumPy's; received {spec.dtype!r}"
        prefix = self.text_prefix
        if prefix and not (prefix.separator and prefix.values):
            yield "text_prefix must have a separator and values"


def _binding_problems(binding):
    """Yield what is wrong with what a user calls the model's inputs."""
    for name, keys in binding.items():
        path = keys if isinstance(keys, list) else [keys]
        if not path or any(type(key) not in (str, int) for key in path):
            yield (
                f"binding.{name} must be a key, the name of an Input, an index, or a list of "
                f"these; received {keys!r}"
            )


def _way_to_make(folder):
    return (
        "make one of your model with `seqkeras.export.save_run`, or train one with "
        f"`seqkeras train TASK --out {folder}`"
    )


def _specs(inputs):
    """Return the inputs of a model in the manifest's form; invalid ones are left unchanged."""
    if not isinstance(inputs, dict):
        return inputs
    fields = ("dtype", "shape")
    return [
        {"name": name, **(dict(zip(fields, spec)) if isinstance(spec, list) else {"dtype": spec})}
        for name, spec in inputs.items()
    ]

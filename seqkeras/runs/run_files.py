"""The files of a run but its scores: record, model, tokenizers and real inputs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from seqkeras import files
from seqkeras.runs.examples import ARRAYS, EXAMPLES, VALIDATION, are_examples, without_arrays
from seqkeras.runs.record import RunError, RunRecord
from seqkeras.runs.reference import Reference
from seqkeras.serving.manifest import PIPELINE_TEXTS
from seqkeras.tokenizers.special import special_ids

if TYPE_CHECKING:
    import keras

    from seqkeras.serving.text import Tokenizer

MODEL = "model.keras"
"""The trained model."""
SCORES = "scores.json"
"""What training measured."""
ATTENTION_MAP = "attention.png"
"""Attention maps of a few examples."""
FORECASTS = "forecast.png"
"""Past, targets and forecasts of a few examples."""
CHECKPOINT = "checkpoint.keras"
"""The model of a run that is not finished."""
ROLES = ("text", "source", "target", "words", "characters")
"""The roles of tokenizers: what each reads or writes."""
# Package, or class, of another library's tokenizer -> how to convert it.
WAYS = {
    "TextVectorization": "from_text_vectorization(layer) makes one of it",
    "keras_hub": "from_keras_nlp(tokenizer) makes one of it",
    "keras_nlp": "from_keras_nlp(tokenizer) makes one of it",
    "tokenizers": "Subwords(tokenizer.to_str()) makes one of it",
    "transformers": "Subwords.from_file('FOLDER/tokenizer.json') reads what its "
    "save_pretrained('FOLDER') writes",
}


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """The content of a run folder except model and scores; `save_run` and training write it.

    `RunFiles.of` makes one, and `RunFiles.read` reads one from a run folder.

    Attributes:
        record: the `RunRecord`.
        tokenizers: role -> tokenizer.
        validation: the real inputs with their targets, as JSON content.
        arrays: name -> array, for the inputs that are arrays.
        reference: the `Reference` of the user's call of the model, or None.

    Raises:
        RunError: `of` and `read`, with every reason, if no run can hold the content.

    Example:
        >>> from seqkeras.runs import RunFiles
        >>> from seqkeras.tokenizers import CharacterTable
        >>> table = CharacterTable.learn(["yes", "no"])
        >>> tables = {"source": table, "target": table}
        >>> validation = [{"text": "yes", "target": "no"}]
        >>> limits = {"source_length": 9, "target_length": 9}
        >>> run = RunFiles.of("runs/own", validation, tables, pipeline="Translate", limits=limits)
        >>> run.inputs, run.record.decoding  # with the ids of the target's tokenizer
        (['yes'], {'start_id': 2, 'end_id': 3})
    """

    record: RunRecord
    tokenizers: Mapping[str, Any]  # of `Tokenizer`s
    validation: list
    arrays: dict
    reference: Reference | None = None

    @classmethod
    def of(
        cls,
        where: Path | str,
        validation: list[dict[str, Any]],
        tokenizers: Mapping[str, Tokenizer] | None = None,
        reference: Reference | None = None,
        **fields: Any,
    ) -> Self:
        """Return the content of a run; the arguments are described at `save_run`.

        Args:
            where: the run's folder, for errors.
            reference: reference of the `RunFiles`.
            fields: fields of the `RunRecord` but tokenizers; None for what they are by default.

        Raises:
            RunError: with the reason, if no run can hold them.
        """
        tokenizers = tokenizers or {}
        for role, tokenizer in tokenizers.items():
            if role not in ROLES:
                raise RunError(
                    f"{where}: tokenizers must be named {', '.join(ROLES)}; received {role!r}."
                )
            if not hasattr(tokenizer, "to_file"):
                raise RunError(
                    f"{where}: tokenizers[{role!r}] must be a tokenizer of seqkeras.tokenizers; "
                    f"received a {type(tokenizer).__name__}{_way_of(tokenizer)}."
                )
        fields = {name: value for name, value in fields.items() if value is not None}
        decoding = _decoding(fields["pipeline"], tokenizers, fields.get("decoding") or {})
        fields = (
            {"task": "own", "limits": None, "text_prefix": None} | fields | {"decoding": decoding}
        )
        record = RunRecord(
            tokenizers={role: f"tokenizer/{role}.json" for role in tokenizers},
            **{name: plain(where, name, value) for name, value in fields.items()},
        )
        record.parse(where)
        arrays = {}
        validation = plain(where, "validation", without_arrays(validation, arrays))
        if not are_examples(validation):
            raise RunError(f"{where}: validation must be {EXAMPLES}.")
        return cls(record, tokenizers, validation, arrays, reference)

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Return the record and the tokenizers of a finished run; real inputs are left out.

        Raises:
            RunError: if the folder holds no finished run, or several, or a tokenizer is damaged.
        """
        record = RunRecord.read(folder)
        record.require_one(folder)
        return cls(record, record.read_tokenizers(folder), [], {})

    @property
    def inputs(self) -> list[Any]:
        """The real inputs."""
        return [
            example["input"] if "input" in example else example["text"]
            for example in self.validation
        ]

    def write(self, folder: Path, model: keras.Model, scores: Any) -> None:
        """Write every file completely or not at all; the record is last, and marks a complete run.

        Args:
            folder: a `Path` that exists.
            model: a Keras model that is built.
            scores: the model's scores, as JSON content.

        Raises:
            OSError: if a file can not be written.
        """
        self.write_tokenizers(folder)
        with files.written_aside(folder / MODEL) as aside:
            model.save(aside)
        files.write_json(folder / VALIDATION, self.validation)
        if self.arrays:
            with files.written_aside(folder / ARRAYS) as aside:
                np.savez(aside, **self.arrays)
        if self.reference is not None:
            self.reference.write(folder)
        files.write_json(folder / SCORES, scores)
        self.record.write(folder)

    def write_tokenizers(self, folder: Path) -> None:
        """Write each tokenizer's file into `tokenizer/` of a run's folder.

        Args:
            folder: a `Path` that exists.

        Raises:
            OSError: if a file can not be written.
        """
        (folder / "tokenizer").mkdir(exist_ok=True)
        for role, path in self.record.tokenizers.items():
            with files.written_aside(folder / path) as aside:
                self.tokenizers[role].to_file(aside)


def _way_of(tokenizer):
    kinds = type(tokenizer).__mro__
    names = [name for kind in kinds for name in (kind.__name__, kind.__module__.partition(".")[0])]
    return next((f": {WAYS[name]}" for name in names if name in WAYS), "")


def _decoding(pipeline, tokenizers, decoding):
    """Return `decoding` with the start and end ids of the tokenizer of generated texts."""
    generated = PIPELINE_TEXTS[pipeline].generated if pipeline in PIPELINE_TEXTS else None
    tokenizer = tokenizers.get(generated)
    if tokenizer is None or not isinstance(decoding, dict):
        return decoding
    ids = dataclasses.asdict(special_ids(tokenizer))
    known = {name: ids[name] for name in ("start_id", "end_id") if ids[name] is not None}
    return known | decoding


def plain(folder: object, name: str, value: Any) -> Any:
    """Return a value as JSON content: NumPy's numbers as Python's, tuples and arrays as lists.

    Raises:
        RunError: if JSON can not hold it.
    """
    try:
        return json.loads(json.dumps(value, default=_of_numpy, allow_nan=False))
    except (RecursionError, TypeError, ValueError) as error:
        raise RunError(f"{folder}: {name} must be what JSON can hold: {error}.") from error


def _of_numpy(value):
    if not hasattr(value, "tolist"):
        raise TypeError(f"received a {type(value).__name__}")
    return value.tolist()

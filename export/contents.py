"""What a run holds, read and checked before anything is traced or written."""

import dataclasses
import json
import warnings
import zipfile
from pathlib import Path

import keras

from export.families.calling import build
from export.families.inputs import FEEDS, fed_specs
from seqkeras.runs import MODEL, RECORD, SCORES, VALIDATION, RunError, RunRecord
from seqkeras.tokenizers import read_tokenizer
from serving.manifest import DecodingDefaults, Limits, TextPrefix


@dataclasses.dataclass(frozen=True)
class Contents:
    """A run.

    Attributes:
        record: its `RunRecord`; limits, decoding and prefix are parts of it.
        model: the Keras model.
        tokenizers: role -> tokenizer.
        limits, decoding, prefix: `serving.manifest`'s classes.
        takes: list of `TensorSpec`, what the model is called with; None where the run says nothing.
        examples: real inputs, {"input": ...} or {"text": ..., "target": ...}.
        scores: what training measured.
    """

    record: RunRecord
    model: keras.Model
    tokenizers: dict
    limits: Limits
    decoding: DecodingDefaults
    prefix: TextPrefix | None
    takes: list | None
    examples: list
    scores: dict

    @property
    def inputs(self):
        """The real inputs, as the pipeline takes them."""
        return [each["input"] if "input" in each else each["text"] for each in self.examples]


def read_contents(run):
    """Read a run.

    Args:
        run: its folder, a `Path`.

    Raises:
        RunError: if the run can not be used.
    """
    record = RunRecord.read(run)
    parsed = record.parse(run / RECORD)
    return Contents(
        record=record,
        limits=parsed.limits,
        decoding=parsed.decoding,
        prefix=parsed.text_prefix,
        takes=parsed.inputs and list(parsed.inputs),
        examples=_read_examples(run / VALIDATION),
        scores=_read_json(run / SCORES),
        tokenizers={role: _read_tokenizer(run, path) for role, path in record.tokenizers.items()},
        model=_load_model(run / MODEL, record.pipeline, parsed.inputs),
    )


def _load_model(path, pipeline, inputs):
    """The model with its weights.

    A subclass of `keras.Model` whose `call` must have several arguments Keras loads without any
    weights, and only warns: such a model is called first.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = keras.models.load_model(path)
        if any("cannot be built automatically" in str(each.message) for each in caught):
            build(model, inputs or fed_specs(model, FEEDS.get(pipeline, {})))
            model.load_weights(path)
        return model
    except (ValueError, TypeError, OSError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise RunError(
            f"{path}: not a model that Keras can load: {reason}; train again, or name the module "
            "of its classes by --import."
        ) from error


def _read_tokenizer(run, path):
    try:
        return read_tokenizer(run / path)
    except (OSError, ValueError) as error:
        raise RunError(f"{run}: {path} can not be used: {error}; train again.") from error


def _read_examples(path):
    """The run's real inputs, with their targets if there are any."""
    examples = _read_json(path)
    if not isinstance(examples, list) or not examples or not all(map(_is_example, examples)):
        raise RunError(
            f'{path}: must be a list of {{"input": ...}} or {{"text": ..., "target": ...}}, one at '
            "least; train again."
        )
    return [_with_tuples(each) for each in examples]


def _is_example(value):
    if not isinstance(value, dict):
        return False
    strings = [isinstance(value.get(key), str) and value[key] for key in ("text", "target")]
    return all(strings) or "input" in value


def _with_tuples(example):
    """JSON has lists where a pair of texts, or a text's words, are a tuple."""
    given = example.get("input")
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return {**example, "input": tuple(given)}
    return example


def _read_json(path: Path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: can not be read: {error}; train again.") from error

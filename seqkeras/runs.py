"""The files of a finished run, which export reads.

run.json         task; what the bundle's manifest will say of it; written last
model.keras      the trained model
tokenizer/       the tokenizers, by their roles: source.json and target.json, or text.json
validation.json  real inputs with their targets, on which export compares the models
validation.npz   the inputs of these that are arrays, if there are any
scores.json      what training measured
attention.png    attention maps of a few examples
forecast.png     past, targets and forecasts of a few examples

`save_run` writes one for any model, however it was trained.
"""

import contextlib
import dataclasses
import json
from pathlib import Path

import numpy as np

from seqkeras import files
from seqkeras.folders import written_aside
from seqkeras.tokenizers.special import special_ids
from serving.manifest import (
    PIPELINE_TEXTS,
    DecodingDefaults,
    Limits,
    Refusal,
    TensorSpec,
    TextPrefix,
)
from serving.manifest.fields import parse_fields
from serving.text import Pattern

OPTIONS = "options.json"  # of `python -m training`, the first file of a run
RECORD = "run.json"
MODEL = "model.keras"
VALIDATION = "validation.json"
ARRAYS = "validation.npz"
SCORES = "scores.json"
ATTENTION_MAP = "attention.png"
FORECASTS = "forecast.png"
DICTIONARIES = {"tokenizers": "{'text': tokenizer}", "settings": "{'labels': ['no', 'yes']}"}
CHECKPOINT = "checkpoint.keras"  # only while the run is not finished
TRAIN_AGAIN = "Train again."
ARRAY = "array"  # the only key of a dictionary that refers to an array of `ARRAYS`
TOKENIZERS = {"source": "tokenizer/source.json", "target": "tokenizer/target.json"}


ROLES = ("text", "source", "target", "words", "characters")  # of tokenizers
EXAMPLES = 'a list of {"input": ...} or {"text": ..., "target": ...}, one at least'


# Package, or class, of another library's tokenizer -> how to convert it.
WAYS = {
    "TextVectorization": "from_text_vectorization(layer) makes one of it",
    "keras_hub": "from_keras_nlp(tokenizer) makes one of it",
    "keras_nlp": "from_keras_nlp(tokenizer) makes one of it",
    "tokenizers": "Subwords(tokenizer.to_str()) makes one of it",
    "transformers": "Subwords.from_file('FOLDER/tokenizer.json') reads what its "
    "save_pretrained('FOLDER') writes",
}


class RunError(Refusal):
    """A run folder that can not be used; the message names a way out."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """The content of `run.json`.

    Args:
        task: what was trained, as in `python -m training TASK`.
        pipeline: the class of `serving.pipelines` that will serve it.
        limits, decoding, text_prefix, tokenizers, settings: as in the manifest
            (`serving.manifest`; what a pipeline's settings are, `serving.pipelines` says).
        inputs: name -> [dtype, shape] of the model's inputs; None if export can infer them.
    """

    task: str
    pipeline: str
    limits: dict
    decoding: dict
    text_prefix: dict | None
    tokenizers: dict = dataclasses.field(default_factory=lambda: dict(TOKENIZERS))
    settings: dict = dataclasses.field(default_factory=dict)
    inputs: dict | None = None

    def write(self, folder):
        files.write_json(Path(folder) / RECORD, dataclasses.asdict(self))

    def parse(self, where, former_names=False):
        """The parts that the manifest has classes for, as a `Parsed`.

        Args:
            where: the owner of the record, for errors.
            former_names: as of `serving.manifest.fields.parse_fields`.

        Raises:
            RunError: with every reason, if they are invalid.
        """
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
        found = parse_fields(Parsed, parts, "", reasons, former_names)
        if not reasons:
            reasons = [*Parsed(**found).problems()]
        if reasons:
            raise RunError(*reasons, where=where)
        return Parsed(**found)

    def read_tokenizers(self, folder):
        """Role -> tokenizer of the run.

        Raises:
            RunError: if one of them is damaged.
        """
        from serving.text import read_tokenizer  # with the tokenizers' libraries

        found = {}
        for role, path in self.tokenizers.items():
            try:
                found[role] = read_tokenizer(Path(folder) / path)
            except (OSError, ValueError) as error:
                raise RunError(
                    f"{path} can not be used: {error}", where=folder, advice=TRAIN_AGAIN
                ) from error
        return found

    @classmethod
    def read(cls, folder):
        """The record of a finished run.

        Raises:
            RunError: if the folder holds no finished run.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise RunError(f"{folder}: no such run folder; {_way_to_make(folder)}.")
        if (folder / "manifest.json").is_file():
            raise RunError(f"{folder}: is a bundle; the order is: python -m export RUN BUNDLE.")
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

    def problems(self):
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


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """The content of a run folder except model and scores; `save_run` and training write it.

    Attributes:
        record: its `RunRecord`.
        tokenizers: role -> tokenizer.
        validation: the real inputs with their targets, as JSON content.
        arrays: name -> array, of the inputs that are arrays.
    """

    record: RunRecord
    tokenizers: dict
    validation: list
    arrays: dict

    @classmethod
    def of(
        cls,
        where,
        pipeline,
        validation,
        limits,
        tokenizers=None,
        task="own",
        decoding=None,
        settings=None,
        text_prefix=None,
        inputs=None,
    ):
        """What the arguments say; they are those of `save_run`.

        Args:
            where: the run's folder, for errors.

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
        record = RunRecord(
            task,
            pipeline,
            _plain(where, "limits", limits),
            _plain(where, "decoding", _decoding(pipeline, tokenizers, decoding or {})),
            _plain(where, "text_prefix", text_prefix),
            {role: f"tokenizer/{role}.json" for role in tokenizers},
            _plain(where, "settings", settings or {}),
            _plain(where, "inputs", inputs),
        )
        record.parse(where)
        arrays = {}
        validation = _plain(where, "validation", _without_arrays(validation, arrays))
        if not are_examples(validation):
            raise RunError(f"{where}: validation must be {EXAMPLES}.")
        return cls(record, tokenizers, validation, arrays)

    @classmethod
    def read(cls, folder):
        """The record and the tokenizers of a finished run; real inputs are left out.

        Raises:
            RunError: if the folder holds no finished run, or a tokenizer is damaged.
        """
        record = RunRecord.read(folder)
        return cls(record, record.read_tokenizers(folder), [], {})

    @property
    def inputs(self):
        """The real inputs."""
        return [
            example["input"] if "input" in example else example["text"]
            for example in self.validation
        ]

    def write(self, folder, model, scores):
        """Write every file completely or not at all; the record is last, and marks a complete run.

        Args:
            folder: a `Path` that exists.
            model: a Keras model that is built.
            scores: the model's scores, as JSON content.
        """
        self.write_tokenizers(folder)
        with files.written_aside(folder / MODEL) as aside:
            model.save(aside)
        files.write_json(folder / VALIDATION, self.validation)
        if self.arrays:
            with files.written_aside(folder / ARRAYS) as aside:
                np.savez(aside, **self.arrays)
        files.write_json(folder / SCORES, scores)
        self.record.write(folder)

    def write_tokenizers(self, folder):
        (folder / "tokenizer").mkdir(exist_ok=True)
        for role, path in self.record.tokenizers.items():
            with files.written_aside(folder / path) as aside:
                self.tokenizers[role].to_file(aside)


def save_run(
    folder,
    model,
    pipeline,
    validation,
    limits,
    tokenizers=None,
    task="own",
    decoding=None,
    settings=None,
    scores=None,
    text_prefix=None,
    inputs=None,
    check_export=True,
):
    """Write a run folder, from which `python -m export` makes a bundle.

    With TensorFlow as the backend, the model is loaded once more and passes all checks of export
    before the folder appears: this takes seconds, and memory for a second model. On other backends
    only weights, vocabularies and texts are checked here, the rest by export.

    Args:
        folder: the folder to create; it must not exist, or be empty.
        model: a Keras model that is built.
        pipeline: the class of `serving.pipelines` that will serve it, such as "Classify".
        validation: list of real inputs, on which export proves itself: dictionaries of "input", as
            the pipeline takes it, and if there is one "target"; of a translation of texts "text"
            and "target". By targets precisions have a score (what they are: docs/export.md).
        limits: dictionary of "source_length" and, where texts are generated, "target_length".
        tokenizers: role -> tokenizer of `seqkeras.tokenizers`: "source" and "target", "text", or
            "words" of trees, "words" and "characters" of `BiDAF`; of frames none, but for the
            "target" of a translation.
        task: what the model was trained for, in a word.
        decoding: where texts are generated, dictionary of the manifest's `DecodingDefaults`.
            Without `start_id` or `end_id` they are those of the tokenizer
            (`seqkeras.tokenizers.special_ids`).
        settings: dictionary, see `serving.pipelines`.
        scores: of the model: name -> number.
        text_prefix: dictionary of the manifest's `TextPrefix`.
        inputs: the model's inputs, if export can not infer them: name -> (dtype, shape), such as
            {"token_ids": ("int64", ("batch", "length"))}.
        check_export: False leaves the checks of the loaded model to export, if memory does not
            suffice for a second model.

    Raises:
        InUseError: if another process writes the folder.
        RunError: with every reason, if there is something in the folder, the model is not built, or
            export would refuse the run. Then nothing is written.
    """
    from seqkeras.run_checks import (  # with Keras, which a reader of records does not need
        export_can_be_asked,
        export_problems,
        own_problems,
        run_problems,
    )

    _require_kinds(model, pipeline, tokenizers=tokenizers, settings=settings)
    folder = Path(folder)
    _require_free(folder)
    if not model.built:
        raise RunError(
            f"{folder}: the model must be built, or it would be saved without its weights; call it "
            "once, or load them first."
        )
    run = RunFiles.of(
        folder,
        pipeline,
        validation,
        limits,
        tokenizers,
        task=task,
        decoding=decoding,
        settings=settings,
        text_prefix=text_prefix,
        inputs=inputs,
    )
    given = run.inputs
    problems = [*own_problems(pipeline, model, run.tokenizers, run.record.decoding, given)]
    ask_export = check_export and not problems and export_can_be_asked()
    if not ask_export:
        parsed = run.record.parse(folder)
        parts = parsed.limits, parsed.decoding, run.record.settings
        problems += run_problems(pipeline, model, run.tokenizers, *parts, given)
    _require_none(folder, problems)
    scores = _plain(folder, "scores", scores or {})
    with written_aside(folder.absolute(), lambda: _require_free(folder)) as aside:
        run.write(aside, model, scores)
        _require_none(folder, export_problems(aside) if ask_export else ())


def _require_kinds(model, pipeline, **dictionaries):
    from seqkeras.run_checks import is_model

    if not is_model(model):
        raise RunError(f"save_run: model must be a Keras model; received a {type(model).__name__}.")
    if not isinstance(pipeline, str):
        raise RunError(
            f"save_run: pipeline must be {', '.join(PIPELINE_TEXTS)}; received a "
            f"{type(pipeline).__name__}."
        )
    for name, value in dictionaries.items():
        if not isinstance(value, dict | None):
            raise RunError(
                f"save_run: {name} must be a dictionary, as {DICTIONARIES[name]}; received a "
                f"{type(value).__name__}."
            )


def _way_of(tokenizer):
    kinds = type(tokenizer).__mro__
    names = [name for kind in kinds for name in (kind.__name__, kind.__module__.partition(".")[0])]
    return next((f": {WAYS[name]}" for name in names if name in WAYS), "")


def _way_to_make(folder):
    return (
        "make one of your model with `seqkeras.runs.save_run`, or train one with "
        f"`python -m training TASK --out {folder}`"
    )


def _require_free(folder):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: must not exist, or be empty; choose another folder.")


def _require_none(folder, problems):
    if problems:
        raise RunError(*problems, where=folder)


def _decoding(pipeline, tokenizers, decoding):
    """`decoding` with the start and end ids of the tokenizer of generated texts."""
    generated = PIPELINE_TEXTS[pipeline].generated if pipeline in PIPELINE_TEXTS else None
    tokenizer = tokenizers.get(generated)
    if tokenizer is None or not isinstance(decoding, dict):
        return decoding
    found = dataclasses.asdict(special_ids(tokenizer))
    known = {name: found[name] for name in ("start_id", "end_id") if found[name] is not None}
    return known | decoding


def are_examples(validation):
    """Whether the value has the form of `EXAMPLES`."""
    return isinstance(validation, list) and bool(validation) and all(map(_is_example, validation))


def with_arrays(examples, folder):
    """The examples of a run folder's `VALIDATION`, with the inputs from its `ARRAYS`.

    Raises:
        OSError, KeyError, ValueError: if that is missing, or no such file.
    """
    with contextlib.ExitStack() as stack:
        arrays = None

        def put(value):
            nonlocal arrays
            if not isinstance(value, dict):
                return value
            if set(value) != {ARRAY}:
                return {name: put(part) for name, part in value.items()}
            if arrays is None:
                arrays = stack.enter_context(np.load(Path(folder) / ARRAYS, allow_pickle=False))
            return arrays[value[ARRAY]]

        return [put(example) for example in examples]


def _without_arrays(validation, arrays):
    """The examples, each array of numbers in an input moved to `arrays` and replaced by its name
    there."""

    def taken(value):
        if isinstance(value, dict):
            return {name: taken(part) for name, part in value.items()}
        if not isinstance(value, np.ndarray) or not value.ndim or value.dtype.kind not in "biuf":
            return value
        arrays[f"array_{len(arrays)}"] = value
        return {ARRAY: f"array_{len(arrays) - 1}"}

    if not isinstance(validation, list):
        return validation
    return [
        {**example, "input": taken(example["input"])}
        if isinstance(example, dict) and "input" in example
        else example
        for example in validation
    ]


def _is_example(value):
    if not isinstance(value, dict):
        return False
    strings = [isinstance(value.get(key), str) and value[key] for key in ("text", "target")]
    return all(strings) or "input" in value


def _plain(folder, name, value):
    """A value as JSON content: NumPy's numbers as Python's, tuples and arrays as lists.

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


def _specs(inputs):
    """The inputs of a model in the manifest's form; invalid ones are left unchanged."""
    if not isinstance(inputs, dict):
        return inputs
    fields = ("dtype", "shape")
    return [
        {"name": name, **(dict(zip(fields, spec)) if isinstance(spec, list) else {"dtype": spec})}
        for name, spec in inputs.items()
    ]

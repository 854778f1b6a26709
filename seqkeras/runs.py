"""What a finished run leaves for export, beside its weights.

run.json         task; what the bundle's manifest will say of it; written last
model.keras      the trained model
tokenizer/       the tokenizers, by their roles: source.json and target.json, or text.json
validation.json  real inputs with their targets, on which export proves itself
scores.json      what training measured
attention.png    where the model looks, for a few examples

`save_run` makes one of any model, however it was trained.
"""

import dataclasses
import json
from pathlib import Path

from seqkeras import files

RECORD = "run.json"
MODEL = "model.keras"
VALIDATION = "validation.json"
SCORES = "scores.json"
ATTENTION_MAP = "attention.png"
CHECKPOINT = "checkpoint.keras"  # only while the run is not finished
TOKENIZERS = {"source": "tokenizer/source.json", "target": "tokenizer/target.json"}


class RunError(ValueError):
    """A run folder that can not be used as it is; the message names a way out."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """The content of `run.json`.

    Args:
        task: what was trained, as in `python -m training TASK`.
        pipeline: the class of `serving.pipelines` that will serve it.
        limits, decoding, text_prefix, tokenizers, settings: as in the manifest
            (`serving.manifest`; what a pipeline's settings are, `serving.pipelines` says).
    """

    task: str
    pipeline: str
    limits: dict
    decoding: dict
    text_prefix: dict | None
    tokenizers: dict = dataclasses.field(default_factory=lambda: dict(TOKENIZERS))
    settings: dict = dataclasses.field(default_factory=dict)

    def write(self, folder):
        files.write_json(Path(folder) / RECORD, dataclasses.asdict(self))

    @classmethod
    def read(cls, folder):
        """The record of a finished run.

        Raises:
            RunError: if the folder holds no finished run.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise RunError(
                f"{folder}: no such run folder; make one with "
                f"`python -m training TASK --out {folder}`."
            )
        if (folder / "manifest.json").is_file():
            raise RunError(f"{folder}: is a bundle; the order is: python -m export RUN BUNDLE.")
        if not (folder / RECORD).is_file():
            raise RunError(
                f"{folder}: not a finished run, {RECORD} is missing; the training command that "
                "began it goes on where it was."
            )
        try:
            return cls(**json.loads((folder / RECORD).read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise RunError(f"{folder / RECORD}: not a run record: {error}; train again.") from None


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
):
    """Write a run folder, which `python -m export` makes a bundle of.

    Args:
        folder: to make; it must not exist, or be empty.
        model: a Keras model that is built.
        pipeline: the class of `serving.pipelines` that will serve it, such as "Classify".
        validation: list of real inputs, on which export proves itself: dictionaries of "input", as
            the pipeline takes it, and if there is one "target"; of a translation "text" and
            "target".
        limits: dictionary of "source_length" and, where texts are generated, "target_length".
        tokenizers: role -> tokenizer of `seqkeras.tokenizers`: "source" and "target", "text", or
            "words" of trees, "words" and "characters" of `BiDAF`.
        task: what the model was trained for, in a word.
        decoding: dictionary of the manifest's `DecodingDefaults`.
        settings: dictionary, see `serving.pipelines`.
        scores: what was measured of it: name -> number.
        text_prefix: dictionary of the manifest's `TextPrefix`.

    Raises:
        RunError: if there is something in the folder.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: must not exist, or be empty; choose another folder.")
    (folder / "tokenizer").mkdir(parents=True)
    paths = {role: f"tokenizer/{role}.json" for role in tokenizers or {}}
    for role, path in paths.items():
        tokenizers[role].to_file(folder / path)
    with files.written_aside(folder / MODEL) as aside:
        model.save(aside)
    files.write_json(folder / VALIDATION, list(validation))
    files.write_json(folder / SCORES, scores or {})
    record = RunRecord(
        task, pipeline, limits, decoding or {}, text_prefix, paths, dict(settings or {})
    )
    record.write(folder)

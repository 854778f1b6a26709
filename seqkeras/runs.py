"""What a finished run leaves for export, beside its weights.

run.json         task; what the bundle's manifest will say of it; written last
model.keras      the trained model
tokenizer/       source.json and target.json, the character tables
validation.json  real inputs with their targets, on which export proves itself
scores.json      what training measured
attention.png    where the model looks, for a few examples
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
        limits, decoding, text_prefix: as in the manifest (`serving.manifest`).
    """

    task: str
    pipeline: str
    limits: dict
    decoding: dict
    text_prefix: dict | None

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

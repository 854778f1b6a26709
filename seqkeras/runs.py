"""What a finished run leaves for export, beside its weights.

run.json         task; what the bundle's manifest will say of it; written last
model.keras      the trained model
tokenizer/       role.json, one per tokenizer role
validation.json  real inputs with their targets, on which export proves itself
scores.json      what training measured
"""

import dataclasses
import json
from pathlib import Path

from seqkeras import files

RECORD = "run.json"
MODEL = "model.keras"
VALIDATION = "validation.json"
SCORES = "scores.json"


class RunError(ValueError):
    """A run folder that can not be used as it is; the message names a way out."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """The content of `run.json`.

    Args:
        task: what was trained, as in `python -m training TASK`.
        pipeline: the class of `serving.pipelines` that will serve it.
        tokenizers: role -> path of the tokenizer's file, relative to the run.
        limits, decoding, text_prefix: as in the manifest (`serving.manifest`).
        examples: a few inputs to show and to measure with.
    """

    task: str
    pipeline: str
    tokenizers: dict
    limits: dict
    decoding: dict
    text_prefix: dict | None
    examples: list

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
        if not (folder / RECORD).is_file():
            raise RunError(
                f"{folder}: not a finished run, {RECORD} is missing; the training command that "
                "began it goes on where it was."
            )
        try:
            return cls(**json.loads((folder / RECORD).read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise RunError(f"{folder / RECORD}: not a run record: {error}; train again.") from None

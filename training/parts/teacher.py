"""A finished run as a teacher: its model, and what that answers to texts."""

import functools
import hashlib
import json
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from seqkeras import files
from seqkeras.models import Bert, WithHeads
from seqkeras.models.positions import most_positions
from seqkeras.runs import MODEL, RunError, RunFiles
from seqkeras.training.checkpoint import load_model
from seqkeras.training.console import console
from seqkeras.training.none_of_these import SETTING
from seqkeras.training.parts.pretrained import Pretrained
from seqkeras.training.parts.text_logits import logits_of_texts
from seqkeras.training.run import TEACHER
from seqkeras.training.wording import counted


class Teacher:
    """The model of a finished run.

    Args:
        folder: folder of the run.
        pipeline: the pipeline that its task must be served by.

    Attributes:
        run: its `seqkeras.runs.RunFiles`.
        kept: name -> array, what it answered so far.

    Raises:
        RunError: if it is of another pipeline, or reads no texts.
    """

    def __init__(self, folder: Path | str, pipeline: str):
        self.folder = Path(folder)
        self.run = RunFiles.read(self.folder)
        record = self.run.record
        if record.pipeline != pipeline:
            raise RunError(
                f"--teacher {folder}: must be a run of the same task; it is one of {record.task}."
            )
        if "text" not in self.run.tokenizers:
            read = "trees of words" if "words" in self.run.tokenizers else "frames"
            raise RunError(
                f"--teacher {folder}: must be a run that reads texts by tokens, as the student "
                f"does; it reads {read}. Train the teacher with another --encoder, or on texts."
            )
        self.kept = {}

    def load(self) -> keras.Model:
        """Return the teacher's model, new."""
        return load_model(self.folder / MODEL, "train it again", compile=False)

    @functools.cached_property
    def model(self) -> keras.Model:
        """Its model, which is asked."""
        return self.load()

    @property
    def encoder(self) -> Bert:
        """Its `Bert`.

        Raises:
            RunError: if it has none.
        """
        if not isinstance(self.model, WithHeads) or not isinstance(self.model.encoder, Bert):
            raise RunError(
                f"--teacher {self.folder}: must be a fine-tuned BERT, as the student is one; it "
                f"is a {type(self.model).__name__}."
            )
        return self.model.encoder

    def small(self, options: Any) -> Pretrained:
        """Return a `Pretrained` of the teacher's tokens without weights, of the sizes of the
        options."""
        sizes = {
            "hidden_dim": options.embedding_dim,
            "num_layers": options.num_layers,
            "num_heads": options.num_heads,
            "feed_forward_dim": 4 * options.embedding_dim,
        }
        config = {**self.encoder.config, **sizes}
        return Pretrained(str(self.folder), config, [], self.run.tokenizers["text"])

    def require_same_tokens(self, student: Pretrained, limit: int, pairs: bool) -> None:
        """Raise a `RunError` unless teacher and student can read the same token ids.

        Args:
            student: a `Pretrained`.
            limit: the most tokens of an input.
            pairs: whether there are two texts in each.
        """
        encoder, where = self.encoder, f"--teacher {self.folder}"
        if student.tokenizer != self.run.tokenizers["text"]:
            raise RunError(
                f"{where}: its vocabulary is not the vocabulary of {student.folder}; their layers "
                "can not be compared; leave --distil-hidden and --distil-attention out."
            )
        positions = most_positions(encoder.config)
        if positions is not None and limit > positions:
            raise RunError(
                f"{where}: has {positions} positions; choose at most as many as --max-length."
            )
        if pairs and (encoder.config["num_segments"] > 0) != student.has_segments:
            raise RunError(
                f"{where}: of it and {student.folder} only one tells two texts apart, so that "
                "their layers can not be compared."
            )

    def answers(self, texts: Sequence[Any], folder: Path) -> list[np.ndarray]:
        """Return a list of the logits of each text, (V,), one for each label, or of words, (words,
        V), with NaN for words that it did not read.

        Args:
            texts: as the examples of the task have them.
            folder: folder of the run that is trained, a `Path`; what is kept there is not computed
                again.
        """
        name = self._name_of(texts)
        if name not in self.kept:
            logits = _read(folder / TEACHER, name)
            self.kept[name] = self._computed(texts) if logits is None else logits
        flat = self.kept[name]
        if not isinstance(texts[0], tuple) or self.run.record.pipeline != "Tag":
            return flat
        ends = np.cumsum([len(words) for words in texts])
        return np.split(flat, ends[:-1])

    def keep(self, folder: Path) -> None:
        """Write what it answered into the folder of the run that is trained."""
        path = folder / TEACHER
        with files.written_aside(path) as aside, open(aside, "wb") as file:
            np.savez(file, **self.kept)

    def _name_of(self, texts):
        """Return a name for its answers: another model, or other texts, have another one."""
        digest = hashlib.sha256(self._digest.encode())
        for text in texts:
            digest.update(json.dumps(text).encode())
        return digest.hexdigest()

    @functools.cached_property
    def _digest(self):
        with open(self.folder / MODEL, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _computed(self, texts):
        began = time.monotonic()
        rows = logits_of_texts(self.model, self.run, texts, "asking the teacher")
        seconds = time.monotonic() - began
        console.print(f"  the teacher answered {counted(len(rows), 'texts')} in {seconds:.0f} s")
        if self.run.record.settings.get(SETTING):
            rows = [logits[:-1] for logits in rows]
        return (np.concatenate if self.run.record.pipeline == "Tag" else np.stack)(rows)


def _read(path, name):
    """Return the array of a name in a file; None if it is not there."""
    try:
        with np.load(path) as arrays:
            return arrays[name]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None

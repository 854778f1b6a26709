"""Recordings: sequences of frames, of as many numbers each, with a label, or one for each frame.

    .npz    arrays "frames" (recordings, frames, numbers) and "labels", of integers or texts: one
            for each recording, or each frame; "lengths" where recordings are shorter than the array
    table   .csv, .tsv, .jsonl: a row for each recording, with the name of a .npy file of frames
            (frames, numbers), and its label, or the name of a .npy file of a label for each frame
    rows    .csv, .tsv, .jsonl: a row for each frame, with a column for each number, the label, and
            the name of the recording

Names of files are relative to the folder of the table. A single number in each frame needs no axis.
"""

from __future__ import annotations

import dataclasses
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqkeras.data.columns import read_columns
from seqkeras.data.series import numbers_of, read_series
from seqkeras.data.texts import DataError
from seqkeras.serving.categories import category_text

BEGINNINGS = b"PK", np.lib.format.MAGIC_PREFIX  # of .npz, which is a zip archive, and of .npy


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Frames, and what they are.

    Attributes:
        where: the place in the file, for errors.
        numbers: (frames, numbers), NaN where a field is empty; float64 unless the file has float32.
        target: the label, a text; or a list of one for each frame.
        rows: tuple of the rows of texts that the file has; None for arrays.
        spellings: column of labels, or of the recording's name -> set of what the file has there.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import Recording
        >>> recording = Recording("gestures.npz, frames[0]", np.zeros((50, 3)), target="wave")
        >>> [len(part) for part in recording.beginnings(20)]
        [20, 40, 50]
    """

    where: str
    numbers: np.ndarray
    target: Any
    rows: tuple | None = None
    spellings: dict = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def text(self) -> Any:
        """The frames as the pipeline takes them: numbers, or rows."""
        return self.numbers if self.rows is None else self.rows

    def pieces(self, length: int) -> list[Recording]:
        """Return the recording in pieces of `length` frames, the last one shorter; each frame has a
        label."""
        parts = [slice(start, start + length) for start in range(0, len(self), length)]
        return [self._part(part, self.target[part]) for part in parts]

    def beginnings(self, every: int) -> list[Recording]:
        """Return the recording up to every so many frames, and the whole; all have its label."""
        ends = [*range(every, len(self), every), len(self)]
        return [self._part(slice(end), self.target) for end in ends]

    def up_to(self, most: int | None) -> Recording:
        """Return the first frames of the recording, at most so many; None: all."""
        part = slice(most)
        return self._part(part, self.target[part] if isinstance(self.target, list) else self.target)

    def _part(self, part, target):
        rows = None if self.rows is None else self.rows[part]
        return dataclasses.replace(self, numbers=self.numbers[part], target=target, rows=rows)


def read_arrays(path: Path | str, for_each_frame: bool) -> list[Recording]:
    """Return the recordings of a .npz file.

    Args:
        path: path of the file, with the arrays "frames" and "labels"; "lengths" too, where
            recordings are shorter than the array.
        for_each_frame: whether each frame has a label.

    Returns:
        A list of `Recording`, one at least.

    Raises:
        DataError: if the file holds no such arrays, or a number is not finite.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import read_arrays
        >>> np.savez("gestures.npz", frames=np.zeros((2, 50, 3)), labels=["wave", "still"])
        >>> [(len(one), one.target) for one in read_arrays("gestures.npz", for_each_frame=False)]
        [(50, 'wave'), (50, 'still')]
    """
    loaded = _loaded(path)
    if isinstance(loaded, np.ndarray) or not {"frames", "labels"} <= {*loaded.files}:
        held = "one array" if isinstance(loaded, np.ndarray) else ", ".join(loaded.files) or "none"
        raise DataError(f"{path}: expected the arrays 'frames' and 'labels'; found {held}.")
    with loaded:
        arrays = {
            name: _of_numpy(path, lambda name=name: loaded[name])
            for name in ("frames", "labels", "lengths")
            if name in loaded.files
        }
    frames, labels = arrays["frames"], arrays["labels"]
    if frames.ndim == 2:
        frames = frames[..., np.newaxis]
    if frames.ndim != 3 or not frames.size:
        raise DataError(
            f"{path}: 'frames' must have shape (recordings, frames, numbers); received "
            f"{frames.shape}."
        )
    shape = frames.shape[: 1 + for_each_frame]
    if labels.shape != shape:
        unit = "frame" if for_each_frame else "recording"
        raise DataError(
            f"{path}: 'labels' must have shape {shape}, one for each {unit}; received "
            f"{labels.shape}."
        )
    lengths = arrays.get("lengths", np.full(len(frames), frames.shape[1]))
    fits = lengths.shape == shape[:1] and lengths.dtype.kind in "iu"
    if not fits or lengths.min() < 1 or lengths.max() > frames.shape[1]:
        raise DataError(
            f"{path}: 'lengths' must be {len(frames)} integers from 1 to {frames.shape[1]}."
        )
    names = [f"{path}, frames[{number}]" for number in range(len(frames))]
    return [
        _recording(where, _numbers(where, row[:length]), label, "labels")
        for where, row, label, length in zip(names, frames, labels, lengths)
    ]


def read_table(
    path: Path | str, frames_column: str, label_column: str, for_each_frame: bool
) -> list[Recording]:
    """Return the recordings of a table of files; see the head of this module.

    Args:
        path: path of the table.
        frames_column, label_column: names of columns.
        for_each_frame: whether the label is the name of a file of a label for each frame.

    Returns, raises: see `read_arrays`; also if files have frames of different numbers.
    """
    recordings, folder = [], Path(path).parent
    for line, (name, label) in read_columns(path, (frames_column, label_column)):
        where = f"{path}, line {line}: {name}"
        frames = _array(where, folder / name)
        frames = frames[:, np.newaxis] if frames.ndim == 1 else frames
        if frames.ndim != 2 or not frames.size:
            raise DataError(f"{where} must have shape (frames, numbers); received {frames.shape}.")
        numbers = _numbers(where, frames)
        size = numbers.shape[1]
        first = recordings[0].numbers.shape[1] if recordings else size
        if size != first:
            raise DataError(f"{where} has frames of {size} numbers; the first file, of {first}.")
        if for_each_frame:
            labels = _array(f"{path}, line {line}: {label}", folder / label)
            if labels.shape != (len(numbers),):
                raise DataError(
                    f"{path}, line {line}: {label} must have {len(numbers):,} labels, one for each "
                    f"frame of {name}; its shape is {labels.shape}."
                )
            where_labels = f"{path}, line {line}: {label}"
            recordings.append(_recording(where, numbers, labels, label_column, where_labels))
        else:
            recordings.append(_recording(where, numbers, np.array(label), label_column))
    return recordings


def files_of_table(path: Path | str, columns: Sequence[str]) -> list[Path]:
    """Return the files that a table names, in its order.

    Raises:
        DataError: if the table can not be read, or a file is missing.
    """
    return [
        _existing(f"{path}, line {line}: {name}", Path(path).parent / name)
        for line, names in read_columns(path, columns)
        for name in names
    ]


def read_rows(
    path: Path | str,
    numbers: Sequence[str],
    label_column: str,
    for_each_frame: bool,
    recording_column: str | None = None,
    decimals: Mapping[str, str] | None = None,
) -> list[Recording]:
    """Return the recordings of a table with a row for each frame.

    Args:
        path: path of the file.
        numbers: names of the columns of numbers, whose fields may be empty.
        label_column: name of the column of labels.
        for_each_frame: whether the rows of a recording may have different labels.
        recording_column: name of the column that tells recordings apart; None for one recording.
        decimals: name -> decimal sign of columns whose numbers people write.

    Returns:
        A list of `Recording` with rows.

    Raises:
        DataError: if the file can not be read, a value is no number, or a label is missing or
            changes.
    """
    series, _, _ = read_series(path, (*numbers, label_column), series_column=recording_column)
    recordings = []
    for recording in series:
        labels = [category_text(row[-1]) for row in recording.rows]
        for where, label in zip(recording.where, labels):
            if not label:
                raise DataError(f"{where}: {label_column!r} is empty; remove the line.")
            if not for_each_frame and label != labels[0]:
                raise DataError(
                    f"{where}: the label is {label!r:.40} and {labels[0]!r:.40} before; the rows "
                    f"of {recording_column} {recording.name!r:.40} must have one label."
                )
        where = (
            f"{path}, {recording_column} {recording.name!r:.40}" if recording_column else str(path)
        )
        rows = tuple(row[:-1] for row in recording.rows)
        target = labels if for_each_frame else labels[0]
        spellings = {label_column: {row[-1] for row in recording.rows}}
        if recording_column is not None:
            spellings[recording_column] = recording.spellings
        values = numbers_of(recording, numbers, decimals or {})
        recordings.append(Recording(where, values, target, rows, spellings))
    return recordings


def _loaded(path):
    return _of_numpy(path, lambda: _load(path))


def _existing(where, path):
    if not path.is_file():
        raise DataError(f"{where}: no such file.")
    return path


def _array(where, path):
    loaded = _of_numpy(where, lambda: _load(_existing(where, path)))
    if not isinstance(loaded, np.ndarray):
        raise DataError(f"{where} must be a .npy file of one array.")
    return loaded


def _load(path):
    with open(path, "rb") as file:
        if not file.read(8).startswith(BEGINNINGS):
            raise ValueError("it is neither a .npz nor a .npy file")
    return np.load(path, allow_pickle=False)


def _of_numpy(where, load):
    try:
        return load()
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{where}: can not be read: {error.strerror or error}.") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"{where}: must be arrays that NumPy saved: {reason}.") from error


def _numbers(where, frames):
    """Return frames in float32 or, where they have more digits, in float64; float32 holds all."""
    if frames.dtype.kind not in "biuf":
        raise DataError(f"{where}: frames must be numbers; received {frames.dtype}.")
    with np.errstate(over="ignore"):
        wrong = np.argwhere(~np.isfinite(frames.astype("float32")))
    if len(wrong):
        row, number = wrong[0]
        raise DataError(
            f"{where}: number {number} of frame {row} is {frames[row, number]}; put a number "
            "there, or leave the recording out. In a table with a row for each frame a field may "
            "be empty."
        )
    has_few_digits = frames.dtype.kind == "f" and frames.itemsize <= 4
    return frames.astype("float32" if has_few_digits else "float64")


def _recording(where, numbers, labels, column, where_labels=None):
    """Return a recording with a label, or with as many of (frames,) as the recording has."""
    if labels.dtype.kind not in "biuUS":
        raise DataError(
            f"{where_labels or where}: labels must be texts or integers; received {labels.dtype}."
        )
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    written = np.atleast_1d(labels)[: len(numbers)].tolist()
    texts = [*map(category_text, written)]
    spellings = {column: {*map(str, written)}}
    return Recording(where, numbers, texts if labels.ndim else texts[0], None, spellings)

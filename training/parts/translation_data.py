"""The examples of a translation: what is read of the user's files, held out and grouped."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras.data.columns import each_row, read_columns
from seqkeras.data.parallel import each_parallel, each_tab_separated, read_pronunciations
from seqkeras.data.recordings import read_table
from seqkeras.data.stored import Stored
from seqkeras.data.texts import suffix_of
from seqkeras.runs import RunError
from seqkeras.training.options.held_out import OF_SOURCES, share_held_out
from seqkeras.training.parts.splitting import nothing_left, parted
from seqkeras.training.parts.translation_rows import read_source_rows, with_known_categories
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.training.options import FitOptions

OF_TWO_FILES = (
    "; targets in a file of their own are named by --targets, of evaluate by a second --data"
)
WITH_HEADER = (".csv", ".jsonl")


class Example(NamedTuple):
    """A text, (frames, numbers), or a row as name -> value; its target, further targets that are as
    right, of which corpus it is (0 is FILE), and the place of a row in its file."""

    text: Any
    target: str
    others: tuple[str, ...] = ()
    corpus: int = 0
    where: str = ""

    @property
    def targets(self) -> list[str]:
        return [self.target, *self.others]

    @property
    def source(self) -> Hashable:
        """What examples of one source share."""
        if isinstance(self.text, dict):
            return tuple(self.text.items())
        return self.text if isinstance(self.text, str) else self.text.tobytes()


def training_examples(options: FitOptions) -> tuple[Sequence[Example], Sequence[Example]]:
    """Return `Example`s of training and of validation, from the files that options
    name.

    Raises:
        DataError: if a file can not be read.
        RunError: if nothing is left to train on, or to hold out.
    """
    train = _read(options, options.file, options.targets)
    if options.validation is not None:
        validation, held_out = (
            examples_to_answer(options, options.validation, options.validation_targets),
            set(),
        )
    else:
        train, validation = _held_out(options, train)
        if options.categories:
            train, validation = with_known_categories(options, train, validation)
        held_out = {example.source for example in validation}
        validation = _grouped(validation) if options.several_targets else validation
    targets = options.also_targets or (None,) * len(options.also)
    corpora = [train]
    for number, paths in enumerate(zip(options.also, targets, strict=True), start=1):
        further = _kept(
            options,
            (
                example._replace(corpus=number)
                for example in _read(options, *paths)
                if example.source not in held_out
            ),
        )
        if not further:
            raise RunError(f"{paths[0]}: all of its sources are held out of {options.file}.")
        corpora.append(further)
    if options.also:
        train = _kept(options, itertools.chain.from_iterable(corpora))
    return train, validation


def examples_to_answer(
    options: FitOptions, path: Path | str, targets: Path | str | None = None
) -> Sequence[Example]:
    """Return the `Example`s of a file, or of two whose lines belong together.

    Raises:
        DataError: if a file can not be read.
    """
    examples = _read(options, path, targets)
    return _grouped(examples) if options.several_targets else examples


def _read(options, path, targets):
    rows = (
        Example(*pair, where=f"{path}, line {line}" if options.reads_rows else "")
        for line, pair in _rows(options, path, targets)
    )
    if options.lowercase:
        rows = (row._replace(target=row.target.lower()) for row in rows)
    return _kept(options, rows)


def _kept(options, examples):
    """Return examples as a sequence: texts as they take the least memory."""
    return [*examples] if options.sources_are_numbers else Stored(examples)


def _rows(options, path, targets):
    if targets is not None:
        return each_parallel(path, targets)
    if options.format == "cmudict":
        return read_pronunciations(path, options.stress)
    if options.reads_rows:
        return read_source_rows(options, path)
    if options.frames_column is not None:
        return _recordings(path, options.frames_column, options.target_column or "target")
    names = options.source_column, options.target_column
    if suffix_of(path) in WITH_HEADER or any(names):
        return each_row(path, [names[0] or "source", names[1] or "target"])
    return each_tab_separated(path, OF_TWO_FILES)


def _recordings(path, frames_column, target_column):
    """Return (line, (frames, target)) of a table's rows."""
    recordings = read_table(path, frames_column, target_column, for_each_frame=False)
    rows = read_columns(path, [frames_column, target_column])
    return [
        (line, (recording.numbers.astype("float32"), target))
        for recording, (line, (_, target)) in zip(recordings, rows, strict=True)
    ]


def _held_out(options, examples):
    """Return training and validation examples; all examples of a source are in the same part."""
    hashes = np.fromiter((hash(example.source) for example in examples), "int64")
    _, first, numbers = np.unique(hashes, return_index=True, return_inverse=True)
    size = len(first)
    count = max(1, round(share_held_out(options, size, OF_SOURCES) * size))
    if count >= size:
        held_out = counted(size, "different sources are", "source is")
        raise nothing_left(options.file, held_out)
    order = np.random.default_rng(options.seed).permutation(size)
    held_out = np.argsort(first)[order[:count]]  # numbers in the order of the file
    return parted(examples, np.isin(numbers, held_out))


def _grouped(examples):
    """Return an example for each source, with all of its targets."""
    targets = {}
    for example in examples:
        _, answers = targets.setdefault(example.source, (example, {}))
        answers[example.target] = None
    return [
        example._replace(target=first, others=tuple(others))
        for example, (first, *others) in targets.values()
    ]

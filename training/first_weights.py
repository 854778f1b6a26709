"""First weights of a model: those of another run, and weights that do not learn."""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from seqkeras.models import WithHeads
from seqkeras.models.band_widths import FACTORS
from seqkeras.models.linear_ngrams import linear_part
from seqkeras.models.open_classification_head import FITTED
from seqkeras.models.teacher_forcing import COUNTER
from seqkeras.runs import MODEL, OPTIONS, RunError, RunRecord
from seqkeras.serving.text import Tokenizer
from seqkeras.tokenizers import read_tokenizer
from seqkeras.training.console import console
from seqkeras.training.members import members_of
from seqkeras.training.run import MEMBERS

EXTRA = (7, 11, 13, 17, 19)  # entries by which vocabularies grow to find their axes
SHOWN = 12  # paths of variables in a message


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Let the variables whose path matches a pattern keep their values.

    Args:
        model: a model that is built and not compiled.
        patterns: shell patterns, each for the whole path of a variable: "*embedding*".

    Raises:
        RunError: if a pattern matches nothing, or nothing is left to learn.
    """
    for pattern in patterns:
        frozen = [
            variable for variable in model.variables if fnmatch.fnmatchcase(variable.path, pattern)
        ]
        if not frozen:
            paths = [variable.path for variable in model.trainable_variables]
            more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
            raise RunError(
                f"--freeze: no variable matches {pattern!r}; there are {', '.join(paths[:SHOWN])}"
                f"{more}."
            )
        for variable in frozen:
            variable.trainable = False
    if not model.trainable_variables:
        raise RunError("--freeze: no variable is left to learn; choose a narrower pattern.")


def take_weights(
    model: keras.Model, build: Any, run: Any, folder: Path, takes_pretrained: bool = False
) -> None:
    """Give a model the weights of another run of the same task.

    Rows of tokens or labels that stand in both vocabularies are taken; rows of new entries keep
    their first values, and counters of steps begin anew.

    Args:
        model: a model that is built.
        build: a `seqkeras.runs.RunFiles` -> a model like it.
        run: the model's `RunFiles`.
        folder: folder of the other run.
        takes_pretrained: whether the task has the option --pretrained, for errors.

    Raises:
        RunError: if the other model is not of the same sizes.
    """
    folder = Path(folder)
    record = RunRecord.read(folder)
    tokenizers = {role: read_tokenizer(folder / path) for role, path in record.tokenizers.items()}
    there = vocabularies(tokenizers, record.settings)
    entries_here = vocabularies(run.tokenizers, run.record.settings)
    if entries_here.keys() != there.keys():
        raise RunError(
            f"--start-from {folder}: a run of {record.task} has {_listed(there)}; this training of "
            f"{run.record.task} has {_listed(entries_here)}."
        )
    other = keras.models.load_model(folder / MODEL, compile=False)
    known = {role: places_in_both(entries_here[role], there[role]) for role in entries_here}
    take_rows(model, build, run, other, known, folder, takes_pretrained)
    words = [
        f"{len(known[role][0]):,} of {len(entries):,} {role} entries"
        for role, entries in entries_here.items()
    ]
    console.print(f"  weights of {folder}: {', '.join(words)} are known there")


def take_rows(
    model: keras.Model,
    build: Any,
    run: Any,
    other: keras.Model,
    known: Mapping[str, tuple[np.ndarray, np.ndarray]],
    folder: Path,
    takes_pretrained: bool = False,
) -> None:
    """Give a model the weights of another one, but for the rows of what is known to it alone.

    Args:
        model, build, run, takes_pretrained: see `take_weights`.
        other: the other model.
        known: name of each vocabulary -> `places_in_both`.
        folder: folder of the other model, for errors.

    Raises:
        RunError: if it is not of the same sizes.
    """
    left_out = () if _has_bands(model) == _has_bands(other) else (FACTORS,)
    others, axes = _learned(other, left_out), _axes(model, build, run, left_out)
    if len(others) != len(axes):
        raise RunError(
            f"{folder}: its model has {len(others)} weights; this training has {len(axes)}.",
            advice=_way_out(other, takes_pretrained, Path(folder)),
        )
    for variable, taken, roles in zip(_learned(model, left_out), others, axes, strict=True):
        values, source = np.array(variable.numpy()), np.array(taken.numpy())
        sizes = zip(values.shape, source.shape, roles, strict=False)
        if len(values.shape) != len(source.shape) or any(
            size != had for size, had, role in sizes if role is None
        ):
            raise RunError(
                f"{folder}: {taken.path} has the shape {source.shape}; {variable.path} of this "
                f"training has {values.shape}.",
                advice=_way_out(other, takes_pretrained, Path(folder)),
            )
        rows = [
            known[role] if role else (np.arange(size),) * 2
            for size, role in zip(values.shape, roles, strict=True)
        ]
        if rows:
            values[np.ix_(*(row for row, _ in rows))] = source[np.ix_(*(had for _, had in rows))]
        else:
            values = source
        variable.assign(values)


def _way_out(other, takes_pretrained, folder):
    """Return what the user may do where the model of a folder has other sizes than that of a
    task."""
    if members_of(other) != [other]:
        first = folder / MEMBERS / "1"
        return f"It is the mean of several members; begin with one: --start-from {first}."
    is_taken = isinstance(other, WithHeads) and takes_pretrained
    instead = f", or --pretrained {folder} in place of --start-from" if is_taken else ""
    return f"Give the sizes that stand in {folder / OPTIONS}{instead}."


def _has_bands(model):
    return any(variable.name == FACTORS for variable in model.weights)


def _learned(model, left_out):
    """Return the weights that a training learns, without those of some names; others are found anew
    for each file."""
    part = linear_part(model)
    found_ids = {id(variable) for variable in (part.weights if part else ())}
    return [
        variable
        for variable in model.weights
        if variable.name not in (COUNTER, *FITTED, *left_out) and id(variable) not in found_ids
    ]


def vocabularies(
    tokenizers: Mapping[str, Tokenizer], settings: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return a dictionary: name -> entries in their order, of every tokenizer, and of the
    labels."""
    entries = {role: _entries(tokenizer) for role, tokenizer in tokenizers.items()}
    return entries | ({"labels": settings["labels"]} if "labels" in settings else {})


def _entries(tokenizer):
    entries = getattr(tokenizer, "entries", None)
    return entries or [tokenizer.token_of(index) for index in range(len(tokenizer))]


def places_in_both(here: Sequence[str], there: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the entries that both lists have: in `here`, and in `there`."""
    index_there = {entry: index for index, entry in enumerate(there)}
    indices = [index for index, entry in enumerate(here) if entry in index_there]
    return np.array(indices, int), np.array([index_there[here[index]] for index in indices], int)


def _axes(model, build, run, left_out):
    """Return for each weight the vocabulary of each axis, or None: those axes grow with a
    vocabulary."""
    longer, extra = {}, {}
    for role, tokenizer in run.tokenizers.items():
        same = next((name for name, other in run.tokenizers.items() if other is tokenizer), role)
        extra.setdefault(EXTRA[list(run.tokenizers).index(same)], role)
        longer[role] = _Longer(tokenizer, EXTRA[list(run.tokenizers).index(same)])
    record = run.record
    if "labels" in record.settings:
        extra[EXTRA[-1]] = "labels"
        more = [f"\0{index}" for index in range(EXTRA[-1])]
        labels = [*record.settings["labels"], *more]
        record = dataclasses.replace(record, settings={**record.settings, "labels": labels})
    grown = build(dataclasses.replace(run, record=record, tokenizers=longer))
    return [
        [extra.get(more - size) for size, more in zip(variable.shape, other.shape, strict=True)]
        for variable, other in zip(
            _learned(model, left_out), _learned(grown, left_out), strict=True
        )
    ]


class _Longer:
    """A tokenizer that says that it has more entries."""

    def __init__(self, tokenizer: Tokenizer, extra: int):
        self._tokenizer, self._extra = tokenizer, extra

    def __len__(self) -> int:
        return len(self._tokenizer) + self._extra

    def token_of(self, index):
        return self._tokenizer.token_of(min(index, len(self._tokenizer) - 1))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


def _listed(vocabularies):
    return ", ".join(vocabularies) or "no vocabulary"

"""Which examples of a file are held out for validation."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from seqkeras.data.stored import taken
from seqkeras.runs import RunError
from seqkeras.training.options.held_out import share_held_out
from seqkeras.training.wording import counted


class NoneHeldOutError(RunError):
    """No example can be held out.

    Args:
        reason: why.
        way_out: what the user may do instead of naming a file of validation: "", or ", or …".
        option: the one that names the file, as the user writes it.
    """

    def __init__(self, reason: str, way_out: str = "", option: str = "--validation"):
        super().__init__(reason, advice=f"Name a file by {option}{way_out}.")


def nothing_left(file: object, held_out: str, way_out: str = "") -> RunError:
    """Return the error of a file whose examples are all held out.

    Args:
        file: file of the examples.
        held_out: what is held out, with its verb: "2 rows are".
        way_out: see `NoneHeldOutError`.
    """
    return RunError(
        f"{file}: {held_out} held out, so nothing is left for training; give more, choose a "
        f"smaller --held-out, or name a file by --validation{way_out}."
    )


def split(
    examples: Sequence[Any],
    options: Any,
    labels_of: Callable[[Any], Iterable[Any]] = lambda example: (),
    noun: str = "row",
    label: str = "label",
    way_out: str = "",
    size: int | None = None,
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the examples without those that are held out, and those, both in their order.

    Args:
        examples: a list, or a `seqkeras.data.stored.Stored`; and so are the results.
        options: have `held_out`, their share, of which one is held out at least; a `seed`; and
            `file`, for the error.
        labels_of: a function: example -> its distinct labels. An example with a label that no other
            has left stays, so that fewer may be held out.
        noun, label: what the error calls an example, and one of its labels.
        way_out: what the user may do instead of naming a file of validation.
        size: number of examples, where each of these is a group of several.

    Raises:
        NoneHeldOutError: if each example has a label that no other has.
        RunError: if all examples are held out.
    """
    number_of: dict[tuple[Any, ...], int] = {}  # of each of the sets of labels that there are
    sets = (number_of.setdefault((*labels_of(example),), len(number_of)) for example in examples)
    numbers = np.fromiter(sets, "int64")
    left = Counter()
    for labels, count in zip(number_of, np.bincount(numbers)):
        left.update(dict.fromkeys(labels, int(count)))
    share = share_held_out(options, size or len(examples))
    wanted, held_out, of_labels = max(1, round(share * len(examples))), [], [*number_of]
    for index in map(int, np.random.default_rng(options.seed).permutation(len(examples))):
        if len(held_out) == wanted:
            break
        labels = of_labels[numbers[index]]
        if all(left[label] > 1 for label in labels):
            left.subtract(labels)
            held_out.append(index)
    if examples and not held_out:
        raise NoneHeldOutError(
            f"{options.file}: each {noun} has a {label} that no other has, so that none can be "
            "held out",
            way_out,
        )
    if examples and len(held_out) == len(examples):
        rows = counted(len(examples), f"{noun}s are", f"{noun} is")
        raise nothing_left(options.file, rows, way_out)
    is_held_out = np.zeros(len(examples), bool)
    is_held_out[held_out] = True
    return parted(examples, is_held_out)


def folds_apart(
    examples: Sequence[Any], groups: Sequence[Any], options: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the examples without one part of several, and that part, both in their order.

    Args:
        examples: see `split`.
        groups: for each example what it has in common with those that stay in one part with it.
        options: have `folds`, how many parts there are; `fold`, which one is held out, from 1; and
            a `seed`.

    Raises:
        RunError: if there are fewer groups than parts.
    """
    names = [*dict.fromkeys(groups)]
    if len(names) < options.folds:
        raise RunError(
            f"{options.file}: --folds {options.folds} need as many different texts or groups; "
            f"there are {len(names)}."
        )
    order = np.random.default_rng(options.seed).permutation(len(names)).tolist()
    number_of = {names[name]: number for number, name in enumerate(order)}
    held_out = (number_of[group] % options.folds == options.fold - 1 for group in groups)
    return parted(examples, np.fromiter(held_out, bool))


def parted(examples: Sequence[Any], held_out: np.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the examples that are not held out, and those that are, by an array of booleans."""
    return taken(examples, np.flatnonzero(~held_out)), taken(examples, np.flatnonzero(held_out))

"""Which examples of a file are held out for validation."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from seqkeras.runs import RunError
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
    examples: list[Any],
    options: Any,
    labels_of: Callable[[Any], Iterable[Any]] = lambda example: (),
    noun: str = "row",
    label: str = "label",
    way_out: str = "",
) -> tuple[list[Any], list[Any]]:
    """Return the examples without those that are held out, and those, both in their order.

    Args:
        examples: a list.
        options: have `held_out`, their share, of which one is held out at least; a `seed`; and
            `file`, for the error.
        labels_of: a function: example -> its distinct labels. An example with a label that no other
            has left stays, so that fewer may be held out.
        noun, label: what the error calls an example, and one of its labels.
        way_out: what the user may do instead of naming a file of validation.

    Raises:
        NoneHeldOutError: if each example has a label that no other has.
        RunError: if all examples are held out.
    """
    left = Counter(label for example in examples for label in labels_of(example))
    wanted, held_out = max(1, round(options.held_out * len(examples))), set()
    for index in np.random.default_rng(options.seed).permutation(len(examples)).tolist():
        if len(held_out) == wanted:
            break
        labels = labels_of(examples[index])
        if all(left[label] > 1 for label in labels):
            left.subtract(labels)
            held_out.add(index)
    if examples and not held_out:
        raise NoneHeldOutError(
            f"{options.file}: each {noun} has a {label} that no other has, so that none can be "
            "held out",
            way_out,
        )
    if examples and len(held_out) == len(examples):
        rows = counted(len(examples), f"{noun}s are", f"{noun} is")
        raise nothing_left(options.file, rows, way_out)
    train = [example for index, example in enumerate(examples) if index not in held_out]
    return train, [examples[index] for index in sorted(held_out)]


def folds_apart(
    examples: list[Any], groups: Sequence[Any], options: Any
) -> tuple[list[Any], list[Any]]:
    """Return the examples without one part of several, and that part, both in their order.

    Args:
        examples: a list.
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
    parts = [], []
    for example, group in zip(examples, groups, strict=True):
        parts[number_of[group] % options.folds == options.fold - 1].append(example)
    return parts

"""The texts that a vocabulary is learned on, and messages on one that they do not make."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqkeras.data.stored import taken
from seqkeras.runs import RunError
from seqkeras.spreading import evenly_spread
from seqkeras.tokenizers.learn import NoRoomError
from seqkeras.training.console import console

MOST_LEARNED = 500_000  # examples that a vocabulary is learned on


class Texts:
    """The texts of examples, one after another, as often as they are asked for.

    Args:
        examples: a sequence of examples.
        texts_of: functions: example -> its texts. All texts of the first function come first.
    """

    def __init__(self, examples: Sequence[Any], *texts_of: Callable[[Any], Iterable[str]]):
        self._examples, self._texts_of = examples, texts_of

    def __iter__(self) -> Iterator[str]:
        return (text for texts in self._texts_of for row in self._examples for text in texts(row))


def learned_on(examples: Sequence[Any]) -> Sequence[Any]:
    """Return the examples that a vocabulary is learned on: at most `MOST_LEARNED`, evenly spread,
    which a line says."""
    if len(examples) <= MOST_LEARNED:
        return examples
    console.print(f"  the vocabulary is learned on {MOST_LEARNED:,} of {len(examples):,} examples")
    return taken(examples, np.array(evenly_spread(MOST_LEARNED, len(examples))))


@contextlib.contextmanager
def learned_from(file: Path | str, option: str = "--vocab-size") -> Iterator[None]:
    """Turn a ValueError of the tokenizer that is learned within into a `RunError` of the file.

    Args:
        file: file of the texts.
        option: the one that gives the size of the vocabulary, as the user writes it.
    """
    try:
        yield
    except NoRoomError as error:
        raise RunError(
            f"{file}: {option} must be at least {error.needed}, for the characters and special "
            f"tokens alone; received {error.vocab_size}."
        ) from error
    except ValueError as error:
        raise RunError(f"{file}: {error} Choose another {option}.") from error

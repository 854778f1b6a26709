"""Messages on a vocabulary that a user's files do not make."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from seqkeras.runs import RunError
from seqkeras.tokenizers.learn import NoRoomError


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

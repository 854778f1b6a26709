"""Errors of tokenizer libraries as ValueErrors."""

import contextlib


@contextlib.contextmanager
def errors_of_library(who):
    """Raise a ValueError for any error of a library.

    `tokenizers` raises bare `Exception`s, and where its Rust code panics a `PanicException`, which
    is a `BaseException` and has no public name.

    Args:
        who: the beginning of the message.

    Raises:
        ValueError: "who: the library's message".
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{who}: {said}.") from error

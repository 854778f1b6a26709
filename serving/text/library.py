"""What a tokenizer's library raises, as the one kind of error that ours raise."""

import contextlib


@contextlib.contextmanager
def errors_of_library(who):
    """Raise a ValueError for whatever a library raises.

    `tokenizers` raises bare `Exception`s, and where its Rust code panics a `PanicException`, which
    is a `BaseException` and has no public name.

    Args:
        who: what is to be said of the error.

    Raises:
        ValueError: "who: what the library says".
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{who}: {said}.") from error

"""A table of refusals is one test."""

import re

import pytest


def refusals(*table, error=ValueError):
    """Return a test: each call raises an error that has its message.

    Args:
        table: pairs of a function without arguments and a text that the error holds, in which
            three dots stand for anything.
        error: the class of all errors.
    """

    @pytest.mark.parametrize("call, message", table, ids=[message for _, message in table])
    def refused(call, message):
        pattern = ".*".join(re.escape(part) for part in message.split("..."))
        with pytest.raises(error, match=pattern):
            call()

    return refused

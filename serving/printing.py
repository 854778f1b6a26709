"""Answers as a line of text, or as JSON content."""

import dataclasses
import functools
from typing import Any

from .checks import shown

# A terminal obeys control characters, and some end a line or a column.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
ENDS = CONTROLS | str.maketrans({"\n": r"\n", "\r": r"\r", "\t": r"\t"})
WRITTEN = frozenset({str, int, float, bool})  # as they are
KEPT = {code: escape for code, escape in CONTROLS.items() if chr(code) not in "\n\t"}


def as_size(count: int) -> str:
    """Return a number of bytes in the largest unit of which it is at least one.

    Example:
        >>> as_size(3 * 2**19), as_size(1536), as_size(96)
        ('1.5 MiB', '1.5 KiB', '96 bytes')
    """
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"


def as_typed(package: str, command: str = "") -> str:
    """Return what a user types to run a command, by the package whose `__main__` runs.

    It is "seqkeras train" of the package seqkeras.training, "seqkeras-serving predict" of
    seqkeras_serving, and in a checkout "python -m training" or "python -m serving predict".
    """
    first = package.partition(".")[0]
    if first in ("seqkeras", "seqkeras_serving"):
        words = [first.replace("_", "-"), command]
    else:  # each folder has one command, but for that of the bundles
        words = ["python -m", first, command if first == "serving" else ""]
    return " ".join(filter(None, words))


def as_line(answer, n_best=1):
    """Return an answer as text, mostly one line.

    With `n_best` over 1: a line of text, tab, score for each answer, then an empty line. With the
        nodes of a tree: a line for each, then an empty line. A new line or a tab within a text is
        written as \\n, \\r or \\t; only JSON distinguishes it from a backslash and a letter.
        Answers that are not only a `text` have a method `line`.
    """
    if n_best > 1 and hasattr(answer, "alternatives"):
        answers = (answer, *answer.alternatives)
        return "".join(f"{text_and_score(other)}\n" for other in answers)
    return answer.line() if hasattr(answer, "line") else in_line(answer.text)


def marked(text, answer, n_best=1):
    """Return a text with what an answer found in it in brackets, as a line.

        Ada lives in [Oslo: LOC 0.9871].

    With `n_best` over 1: a line for each answer, then an empty one. This is to be read, JSON is for
        programs: a bracket of the text stays as it is.

    Args:
        text: the text.
        answer: an answer with `marks`: (start, end, words) of each place, in their order.
        n_best: how many answers were asked for.
    """
    if n_best > 1 and hasattr(answer, "alternatives"):
        return "".join(f"{marked(text, other)}\n" for other in (answer, *answer.alternatives))
    parts, last = [], 0
    for start, end, words in answer.marks():
        mark = f"[{in_line(text[start:end])}: {words}]" if start < end else f"[{words}] "
        parts += [in_line(text[last:start]), mark]
        last = end
    return "".join([*parts, in_line(text[last:])])


def as_content(answer):
    """Return an answer as JSON content, without fields that were not requested."""
    if type(answer) in WRITTEN:
        return answer
    fields = _written_fields(type(answer))
    if fields is not None:
        content = {}
        for name, default in fields:
            value = getattr(answer, name)
            if type(value) in WRITTEN:
                content[name] = value
            elif not _is_default(value, default):
                content[name] = as_content(value)
        return content
    if hasattr(answer, "tolist"):
        return answer.tolist() if answer.dtype == "float64" else _rounded(answer.tolist())
    if isinstance(answer, dict):
        return {name: as_content(value) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [as_content(value) for value in answer]
    return answer


@functools.cache  # to ask a dataclass for its fields takes longer than to write a short answer
def _written_fields(kind):
    """Return (name, default) of the fields of a dataclass that are written; None of other types."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(
        (field.name, field.default)
        for field in dataclasses.fields(kind)
        if field.metadata.get("written", True)
    )


def unknown_in_words(answer):
    """Yield for each column of an answer to rows which categories the model does not know."""
    for column, categories in getattr(answer, "unknown", {}).items():
        count = sum(categories.values())
        those = "this category" if len(categories) == 1 else "these categories"
        yield (
            f"{column!r} is {', '.join(map(shown, categories))} in {count} row{'s' * (count > 1)}: "
            f"the model does not know {those}"
        )


def in_line(text):
    """Return a text with new lines, tabs and control characters escaped."""
    return text.translate(ENDS)


def in_lines(text):
    """Return a text with control characters escaped, except new lines and tabs."""
    return text.translate(KEPT)


def printable(text):
    """Return a text with lone surrogates escaped, which UTF-8 can not encode."""
    return text.encode(errors="backslashreplace").decode()


def _is_default(value, default):
    """Return whether a value is the default: None or empty; arrays are never the default.

    A dictionary needs no default: it is empty if the model has no such outputs.
    """
    if isinstance(value, dict):
        return not value
    return value is None if default is None else isinstance(value, tuple) and value == default


def _rounded(value):
    """Return nested lists of numbers, rounded to the digits of float32."""
    if isinstance(value, list):
        return [_rounded(number) for number in value]
    return float(f"{value:.7g}")


def text_and_score(answer: Any) -> str:
    """Return a line with an answer's text and score."""
    return f"{in_line(answer.text)}\t{answer.score:.4f}"

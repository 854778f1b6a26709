"""Answers as a line to read, or as what JSON holds."""

import dataclasses
import json
import re

from . import results

ENDS = str.maketrans({"\n": r"\n", "\r": r"\r", "\t": r"\t"})  # of a line or a column


def as_line(answer, n_best=1):
    """Return an answer as text, mostly one line.

    With `n_best` over 1: a line of text, tab, score for each answer, then an empty line. With the
    nodes of a tree: a line for each, then an empty line. A new line or a tab within a text is
    written as \\n, \\r or \\t; JSON alone tells it from a backslash and a letter.
    """
    if n_best > 1 and hasattr(answer, "alternatives"):
        return "".join(f"{_text_and_score(each)}\n" for each in (answer, *answer.alternatives))
    return _LINES.get(type(answer), _text)(answer)


def as_content(answer):
    """Return an answer as what JSON holds; what was not asked for is left out."""
    if dataclasses.is_dataclass(answer):
        values = {each: getattr(answer, each.name) for each in dataclasses.fields(answer)}
        return {
            field.name: as_content(value)
            for field, value in values.items()
            if not _is_default(value, field.default)
        }
    if hasattr(answer, "tolist"):
        return _rounded(answer.tolist())
    if isinstance(answer, dict):
        return {name: as_content(value) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [as_content(value) for value in answer]
    return answer


def as_json_line(content):
    """Return JSON as one line that UTF-8 can hold: only a lone surrogate is escaped."""
    text = json.dumps(content, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_default(value, default):
    """Whether a value was not asked for: defaults are None or empty, and arrays have no truth.

    A dictionary needs no default: it is empty where the model has none of what it would hold.
    """
    if isinstance(value, dict):
        return not value
    return value is None if default is None else isinstance(value, tuple) and value == default


def _rounded(value):
    """Return nested lists of float32 numbers without the digits that float32 has not."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.7g}")


def _in_line(text):
    """Return a text without what would begin a new line or column."""
    return text.translate(ENDS)


def _text(answer):
    return _in_line(answer.text)


def _text_and_score(answer):
    return f"{_in_line(answer.text)}\t{answer.score:.4f}"


def _classification(answer):
    if answer.nodes:
        return "".join(f"{_in_line(node.text)}\t{_classes(node)}\n" for node in answer.nodes)
    return _classes(answer)


def _classes(answer):
    if not answer.scores:
        return f"{answer.score:.4f}"
    return "\t".join(f"{label}\t{answer.scores[label]:.4f}" for label in answer.labels)


def _tagging(answer):
    return " ".join(f"{word.text}/{word.tag}" for word in answer.words)


def _embedding(answer):
    return " ".join(f"{number:.7g}" for number in answer.vector)


def _filling(answer):
    masks = (" ".join(f"{each.token} {each.score:.4f}" for each in mask) for mask in answer.masks)
    return "\t".join([_in_line(answer.text), *masks])


def _forecasting(answer):
    return "\t".join(" ".join(f"{number:.7g}" for number in step) for step in answer.values)


_LINES = {
    results.Classification: _classification,
    results.Tagging: _tagging,
    results.Span: _text_and_score,
    results.Choice: _text_and_score,
    results.Embedding: _embedding,
    results.Filling: _filling,
    results.Forecasting: _forecasting,
}

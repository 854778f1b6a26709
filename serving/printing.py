"""Answers as a line to read, or as what JSON holds."""

import dataclasses

from . import results


def as_line(answer, n_best=1):
    """Return an answer as text, mostly one line.

    With `n_best` over 1: a line of text, tab, score for each answer, then an empty line. With the
    nodes of a tree: a line for each, then an empty line.
    """
    if n_best > 1 and hasattr(answer, "alternatives"):
        return "".join(
            f"{each.text}\t{each.score:.4f}\n" for each in (answer, *answer.alternatives)
        )
    return _LINES.get(type(answer), _text)(answer)


def as_content(answer):
    """Return an answer as what JSON holds; what was not asked for is left out."""
    if dataclasses.is_dataclass(answer):
        values = {each: getattr(answer, each.name) for each in dataclasses.fields(answer)}
        # Defaults are None, or the empty tuple, of which CPython has one.
        return {n.name: as_content(v) for n, v in values.items() if v is not n.default}
    if hasattr(answer, "tolist"):
        return _rounded(answer.tolist())
    if isinstance(answer, dict):
        return {name: as_content(value) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [as_content(value) for value in answer]
    return answer


def _rounded(value):
    """Return nested lists of float32 numbers without the digits that float32 has not."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.7g}")


def _text(answer):
    return answer.text


def _text_and_score(answer):
    return f"{answer.text}\t{answer.score:.4f}"


def _classification(answer):
    if answer.nodes:
        return "".join(f"{node.text}\t{_classes(node)}\n" for node in answer.nodes)
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
    return "\t".join([answer.text, *masks])


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

"""The SavedModel on strings, beside what the pipeline answers to the run's own inputs.

What a signature on strings refuses, as a text that needs windows, is counted and not compared.
"""

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from export.verifying.parity import MARGIN

NAME = "saved_model_text"
BATCH = 64
OPTIONS = {"Answer": {"n_best": 2}}  # of a pipeline, so that its answers show how sure they are


@dataclasses.dataclass(frozen=True)
class Beside:
    """What is compared of an answer.

    Attributes:
        actual, expected: the signature's string, and what it should be.
        is_tie: whether another string is as good.
        numbers, expected_numbers: the same of its numbers, of one shape.
    """

    actual: str = ""
    expected: str = ""
    is_tie: bool = False
    numbers: object = ()
    expected_numbers: object = ()


def answers_on_strings(folder, manifest, inputs, fields=()):
    """What the signatures on strings answer.

    Args:
        folder, manifest: of the bundle.
        inputs: as a pipeline takes them.
        fields: the names of an input's parts.

    Returns:
        For each input its outputs by name, or None where every signature refuses it; None for a
        bundle that has no such signatures.
    """
    path = f"{NAME}/1"
    if path not in manifest.saved_models:
        return None
    answers = [None] * len(inputs)
    named = [_named(each, fields) for each in inputs]
    for function in tf.saved_model.load(str(folder / path)).signatures.values():
        takes = set(function.structured_input_signature[1])
        own = [row for row, each in enumerate(named) if set(each) == takes]
        for rows in _of_one_shape(own, named):
            for row, outputs in zip(rows, _ask(function, [named[r] for r in rows]), strict=True):
                answers[row] = outputs
    return answers


def compare_on_strings(comparison, answers, inputs, beside):
    """Hold the signatures on strings against what they should answer.

    Args:
        comparison: the `Comparison`.
        answers: what `answers_on_strings` returned.
        inputs: that they were asked.
        beside: (row, outputs) -> `Beside`.
    """
    if answers is None:
        return
    before = len(comparison.problems)
    rows = [row for row, outputs in enumerate(answers) if outputs is not None]
    found = [beside(row, answers[row]) for row in rows]
    comparison.figures[f"{NAME}_refused"] = len(inputs) - len(rows)
    for each in found:
        numbers, expected = np.asarray(each.numbers), np.asarray(each.expected_numbers)
        if expected.size:
            comparison.compare_numbers(NAME, numbers, expected)
    comparison.compare_texts(
        NAME,
        [each.actual for each in found],
        [each.expected for each in found],
        [inputs[row] for row in rows],
        lambda place, _: found[place].is_tie,
    )
    if len(comparison.problems) > before:
        comparison.way_out = f" --no-strings leaves out {NAME}, the SavedModel on strings."


def generated_text(outputs, expected, score, is_tie):
    """A text that is generated; `is_tie` takes another, and says whether it may be that."""
    text = outputs["text"].decode()
    if text != expected:
        return Beside(text, expected, is_tie(text))
    return Beside(text, expected, numbers=outputs["score"], expected_numbers=score)


def _named(value, fields):
    """An input's parts by name; a text's words have none."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, Mapping):
        return value
    return dict(zip(fields, value, strict=True)) if len(value) == len(fields) else {}


def _of_one_shape(rows, named):
    """Yield the rows in batches, in each of which inputs have as many choices."""

    def shape(row):
        return [np.shape(value) for value in named[row].values()]

    for _, group in itertools.groupby(sorted(rows, key=shape), shape):
        group = list(group)
        for begin in range(0, len(group), BATCH):
            yield group[begin : begin + BATCH]


def _ask(function, rows):
    """The outputs of each row, None where it is refused, which only that row is in the end."""
    names = rows[0]
    try:
        outputs = function(**{name: tf.constant([each[name] for each in rows]) for name in names})
    except tf.errors.InvalidArgumentError:
        if len(rows) == 1:
            return [None]
        middle = len(rows) // 2
        return _ask(function, rows[:middle]) + _ask(function, rows[middle:])
    outputs = {name: each.numpy() for name, each in outputs.items()}
    return [{name: each[row] for name, each in outputs.items()} for row in range(len(rows))]


def _classification(outputs, answer, pipeline, given):
    if "label" not in outputs:
        return Beside(numbers=outputs["score"], expected_numbers=answer.score)
    best, second, *_ = [*answer.scores.values(), -np.inf]
    return Beside(
        outputs["label"].decode(),
        next(iter(answer.scores)),
        best - second < MARGIN,
        outputs["scores"],
        [answer.scores[label] for label in pipeline.manifest.settings["labels"]],
    )


def _choice(outputs, answer, pipeline, given):
    second, best = sorted(answer.scores)[-2:]
    return Beside(
        f"{outputs['choice'].decode()} ({outputs['index']})",
        f"{answer.text} ({answer.index})",
        best - second < MARGIN,
        outputs["scores"],
        answer.scores,
    )


def _filling(outputs, answer, pipeline, given):
    """The text, and the scores of the best tokens, which may be of others that are as good."""
    scores = np.array([[each.score for each in mask] for mask in answer.masks])
    return Beside(
        outputs["text"].decode(),
        answer.text,
        bool(np.any(scores[:, :1] - scores[:, 1:2] < MARGIN)),
        outputs["scores"][: len(scores)],
        scores,
    )


def _embedding(outputs, answer, pipeline, given):
    return Beside(numbers=outputs["embedding"], expected_numbers=answer.vector)


def _tagging(outputs, answer, pipeline, given):
    """The tags of the words' first tokens, with the tokens' places.

    A tag can only be as probable as another if neither has more than half of it.
    """
    read = pipeline.encode(given)
    [encoding], [(_, tokens)] = read.windows.rows, read.tokens
    tags = [outputs["tags"][token].decode() for token in tokens]
    actual = zip(tags, outputs["starts"][tokens], outputs["ends"][tokens], strict=True)
    expected = [
        (word.tag, *encoding.offsets[token])
        for word, token in zip(answer.words, tokens, strict=True)
    ]
    return Beside(
        _with_places(actual),
        _with_places(expected),
        any(word.score - 0.5 < MARGIN for word in answer.words),
        outputs["scores"][tokens],
        [word.score for word in answer.words],
    )


def _with_places(tags):
    return " ".join(f"{tag} ({start}-{end})" for tag, start, end in tags)


def _span(outputs, answer, pipeline, given):
    """The answer with its place, and how much better it is than none, if there may be none."""
    margins, numbers = [], {}
    for other in answer.alternatives:
        margins.append(np.log(answer.score) - np.log(max(other.score, np.finfo(float).tiny)))
    if answer.margin is not None:
        threshold = pipeline.manifest.settings.get("no_answer_threshold", 0.0)
        margins.append(abs(answer.margin - threshold))
        given = outputs["score"] - outputs["null_score"]
        numbers = {"numbers": given, "expected_numbers": answer.margin}
    return Beside(
        f"{outputs['answer'].decode()} ({outputs['start']})",
        f"{answer.text} ({-1 if answer.start is None else answer.start})",
        min(map(abs, margins), default=np.inf) < MARGIN,
        **numbers,
    )


# Pipeline -> (outputs, the pipeline's answer, the pipeline, what it was given) -> `Beside`.
BESIDE = {
    "Answer": _span,
    "Choose": _choice,
    "Classify": _classification,
    "Embed": _embedding,
    "FillMask": _filling,
    "Tag": _tagging,
}

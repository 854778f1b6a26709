"""The SavedModel on strings, beside what the pipeline answers to the run's own inputs.

What a signature on strings refuses, as a text that needs windows, is counted and not compared; and
so is a text that a SentencePiece model may split in two ways of one score, if it takes the other.
"""

import itertools
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from export.text_graphs.reading import in_graph
from serving.text import SentencePieces, read_tokenizer

NAME = "saved_model_text"
BATCH = 64


def answers_on_strings(folder, manifest, inputs, fields=()):
    """What the signatures on strings answer.

    Args:
        folder, manifest: of the bundle.
        inputs: as a pipeline takes them.
        fields: the names of an input's parts.

    Returns:
        For each input its outputs by name, none where it is split otherwise in a tie, or None where
        every signature refuses it; None for a bundle that has no such signatures.
    """
    path = f"{NAME}/1"
    if path not in manifest.saved_models:
        return None
    answers = [None] * len(inputs)
    named = [_named(value, fields) for value in inputs]
    for function in tf.saved_model.load(str(folder / path)).signatures.values():
        takes = set(function.structured_input_signature[1])
        own = [row for row, parts in enumerate(named) if set(parts) == takes]
        for rows in _of_one_shape(own, named):
            for row, outputs in zip(rows, _ask(function, [named[r] for r in rows]), strict=True):
                answers[row] = outputs
    for role in {"text", "source"} & set(manifest.tokenizers):
        tokenizer = read_tokenizer(folder / manifest.tokenizers[role])
        texts = {row: named[row].get("text") for row, outputs in enumerate(answers) if outputs}
        for row in split_otherwise(tokenizer, texts):
            answers[row] = {}
    return answers


def split_otherwise(tokenizer, texts):
    """The rows whose texts a graph splits into the same pieces in another order: of one score.

    Args:
        tokenizer: any; none but `SentencePieces` has such.
        texts: row -> text.
    """
    if not isinstance(tokenizer, SentencePieces) or not texts:
        return []
    split = in_graph(tokenizer)(tf.constant([*texts.values()])).token_ids.to_list()
    expected = [tokenizer.encode(text) for text in texts.values()]
    return [
        row
        for row, found, ids in zip(texts, split, expected, strict=True)
        if found != ids and sorted(found) == sorted(ids)
    ]


def compare_on_strings(comparison, answers, inputs, expected_answer):
    """Compare what the signatures on strings answer with what they should answer.

    Args:
        comparison: the `Comparison`.
        answers: what `answers_on_strings` returned.
        inputs: that they were asked.
        expected_answer: (row, outputs) -> `ExpectedAnswer`.
    """
    if answers is None:
        return
    before = len(comparison.problems)
    rows = [row for row, outputs in enumerate(answers) if outputs]
    found = [expected_answer(row, answers[row]) for row in rows]
    comparison.figures[f"{NAME}_refused"] = answers.count(None)
    for answer in found:
        numbers, expected = np.asarray(answer.numbers), np.asarray(answer.expected_numbers)
        if expected.size:
            comparison.compare_numbers(NAME, numbers, expected)
    comparison.compare_texts(
        NAME,
        [answer.actual for answer in found],
        [answer.expected for answer in found],
        [inputs[row] for row in rows],
        lambda place, _: found[place].is_tie,
    )
    comparison.figures[f"{NAME}_ties"] += answers.count({})
    if len(comparison.problems) > before:
        comparison.way_out = f" --no-strings leaves out {NAME}, the SavedModel on strings."


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
        outputs = function(**{name: tf.constant([parts[name] for parts in rows]) for name in names})
    except tf.errors.InvalidArgumentError:
        if len(rows) == 1:
            return [None]
        middle = len(rows) // 2
        return _ask(function, rows[:middle]) + _ask(function, rows[middle:])
    outputs = {name: tensor.numpy() for name, tensor in outputs.items()}
    return [{name: array[row] for name, array in outputs.items()} for row in range(len(rows))]

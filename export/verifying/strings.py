"""Compare the SavedModel on strings with the pipeline's answers to the run's own inputs.

Inputs that a signature on strings refuses, such as a text that needs windows, are counted and not
compared, as are texts with two segmentations of equal score of which the graph takes the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from seqkeras.export.exported import ON_STRINGS
from seqkeras.export.text_graphs.reading import in_graph
from seqkeras.export.text_graphs.row_errors import ERROR
from seqkeras.export.text_graphs.signatures import DEFAULT, PAIR
from seqkeras.export.verifying.parity import batches
from seqkeras.serving.text import SentencePieces, read_tokenizer

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.pipelines.record import ExpectedAnswer
    from seqkeras.export.verifying.parity import Comparison
    from seqkeras.serving.text import Tokenizer

NAME = "saved_model_text"


def answers_on_strings(
    exported: Exported, inputs: Sequence[Any], fields: Sequence[str] = ()
) -> list[dict[str, Any] | None] | None:
    """Return the answers of the signatures on strings, or None for a bundle without these.

    Each input, whose parts have the names `fields`, has its outputs by name, {} if the graph splits
    it differently in a tie, None if it is refused.
    """
    signatures = exported.signatures(ON_STRINGS)
    if not signatures:
        return None
    answers: list[dict[str, Any] | None] = [None] * len(inputs)
    named = [_named(value, fields) for value in inputs]
    for function in (asked for name, asked in signatures.items() if name in (DEFAULT, PAIR)):
        takes = set(function.structured_input_signature[1])
        asked = [row for row, parts in enumerate(named) if set(parts) == takes]
        for rows in _of_one_shape(asked, named):
            for row, outputs in zip(rows, _ask(function, [named[r] for r in rows]), strict=True):
                answers[row] = outputs
    tokenizers = exported.manifest.tokenizers
    for role in {"text", "source"} & set(tokenizers):
        tokenizer = read_tokenizer(exported.folder / tokenizers[role])
        texts = {row: named[row].get("text") for row, outputs in enumerate(answers) if outputs}
        for row in split_otherwise(tokenizer, texts):
            answers[row] = {}
    return answers


def split_otherwise(tokenizer: Tokenizer, texts: Mapping[int, str]) -> list[int]:
    """Return the rows whose texts a graph splits into the same pieces in another order, with equal
    score; only `SentencePieces` has such rows."""
    if not isinstance(tokenizer, SentencePieces) or not texts:
        return []
    split = in_graph(tokenizer)(tf.constant([*texts.values()])).token_ids.to_list()
    expected = [tokenizer.encode(text) for text in texts.values()]
    return [
        row
        for row, split_ids, ids in zip(texts, split, expected, strict=True)
        if split_ids != ids and sorted(split_ids) == sorted(ids)
    ]


def compare_on_strings(
    comparison: Comparison,
    answers: Sequence[Any] | None,
    inputs: Sequence[Any],
    expected_answer: Callable[..., ExpectedAnswer],
) -> None:
    """Compare answers of the signatures on strings with `expected_answer` of a row and outputs."""
    if answers is None:
        return
    before = set(comparison.problems)
    rows = [row for row, outputs in enumerate(answers) if outputs]
    pairs = [expected_answer(row, answers[row]) for row in rows]
    comparison.figures[f"{NAME}_refused"] = answers.count(None)
    for answer in pairs:
        numbers, expected = np.asarray(answer.numbers), np.asarray(answer.expected_numbers)
        if expected.size:
            comparison.compare_numbers(NAME, numbers, expected)
    comparison.compare_texts(
        NAME,
        [answer.actual for answer in pairs],
        [answer.expected for answer in pairs],
        [inputs[row] for row in rows],
        lambda index, _: pairs[index].is_tie,
    )
    comparison.figures[f"{NAME}_ties"] += answers.count({})
    if set(comparison.problems) - before:
        comparison.way_out = f" --no-strings leaves out {NAME}, the SavedModel on strings."


def _named(value, fields):
    """Return an input's parts by name; {} for the words of a text."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, Mapping):
        return value
    return dict(zip(fields, value, strict=True)) if len(value) == len(fields) else {}


def _of_one_shape(rows, named):
    """Yield batches of rows whose inputs have the same number of choices, short texts first."""

    def shape(row):
        return [np.shape(value) for value in named[row].values()]

    def characters(row):
        return sum(len(text) for value in named[row].values() for text in np.ravel(value))

    for _, group in itertools.groupby(sorted(rows, key=shape), shape):
        group = sorted(group, key=characters)
        yield from (group[batch] for batch in batches(len(group)))


def _ask(function, rows):
    """Return the outputs of each row, None for a refused row."""
    columns = {name: tf.constant([parts[name] for parts in rows]) for name in rows[0]}
    outputs = {name: tensor.numpy() for name, tensor in function(**columns).items()}
    errors = outputs.pop(ERROR)
    return [
        None if error else {name: array[row] for name, array in outputs.items()}
        for row, error in enumerate(errors)
    ]

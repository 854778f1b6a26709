"""Rows of numbers and categories, the sources of texts: read, learned, and known again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqkeras.data.columns import read_columns
from seqkeras.data.texts import DataError
from seqkeras.runs import RunError
from seqkeras.serving.categories import category_of
from seqkeras.serving.rows import Column, Rows
from seqkeras.training.parts.scaling import learned_categories, learned_numbers


def read_source_rows(options: Any, path: Path | str) -> list[tuple[int, tuple[dict, str]]]:
    """Return (line, (name -> value, target)) of each row of a file.

    Raises:
        DataError: if the file can not be read, or a value is neither missing nor a number.
    """
    names = (*options.numbers, *options.categories)
    numbers = _numbers(options)
    columns = (*names, options.target_column or "target")
    rows = []
    for line, (*values, target) in read_columns(path, columns, may_be_empty=names):
        row = dict(zip(names, values, strict=True))
        try:
            for column in numbers:
                column.number(row[column.name], line, lambda line: f"{path}, line {line}")
            for name in options.categories:
                category_of(row[name])
        except ValueError as error:
            raise DataError(str(error)) from error
        rows.append((line, (row, target)))
    return rows


def learned_rows(options: Any, rows: list[dict]) -> Rows:
    """Return the `Rows` of training rows: their scales, what stands for missing numbers, and their
    categories.

    Raises:
        RunError: if a column has one value alone.
    """
    learned = []
    for column in _numbers(options):
        values = column.values([row[column.name] for row in rows], str)[:, 0]
        more = {"decimal": column.decimal}
        learned.append(learned_numbers(options.file, column.name, values, **more).column)
    for name in options.categories:
        learned.append(learned_categories(options.file, name, [row[name] for row in rows]))
    return Rows(tuple(learned))


def with_known_categories(
    options: Any, train: Sequence[Any], held_out: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return training and validation examples; what is held out with a category that no training
    example has goes back to training.

    Raises:
        RunError: if nothing stays held out.
    """
    known = {category for example in train for category in _categories(options, example.text)}
    is_known = [_categories(options, example.text) <= known for example in held_out]
    if not any(is_known):
        raise RunError(
            f"{options.file}: each row that is held out has a category that no row of training "
            "has; choose another --seed, a larger --held-out, or give --validation."
        )
    back = itertools.compress(held_out, [not known for known in is_known])
    return [*train, *back], [*itertools.compress(held_out, is_known)]


def require_known(rows: Rows, examples: Sequence[Any]) -> None:
    """Raise a `RunError` if an example has a category that is not in the rows of training."""
    for example in examples:
        if unknown := rows.unknown((example.text,), example.where):
            raise RunError(str(unknown[0]))


def _numbers(options):
    signs = options.decimals.signs()
    return [Column(name, decimal=signs.get(name)) for name in options.numbers]


def _categories(options, row):
    """Return the names and categories of a row, without those that are missing."""
    categories = ((name, category_of(row[name])) for name in options.categories)
    return {(name, category) for name, category in categories if category is not None}

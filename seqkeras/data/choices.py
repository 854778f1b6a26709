"""Texts with choices, of which one is right: SWAG, ARC, and tables with columns of any names.

    swag     sent1, sent2, ending0, ending1, ..., label: the text is sent1, a choice is
             "sent2 ending"; .csv as published, or .jsonl of Hugging Face
    arc      .csv or .tsv with question, A, B, ..., answer; or .jsonl, as published with
             {"question": {"stem", "choices": [{"label", "text"}]}, "answerKey"}, of Hugging Face
             with {"question", "choices": {"text": [...], "label": [...]}, "answerKey"}
    list     .jsonl with {"text", "choices": [...], "answer"}
    columns  .csv, .tsv or .jsonl with columns of given names

The right choice is the label or the column of one, or the place of one from 0. Empty choices after
the last are none, so questions may have different numbers of them.

Reference: Zellers et al. 2018, https://arxiv.org/abs/1808.05326; Clark et al. 2018,
https://arxiv.org/abs/1803.05457
"""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from seqkeras.data.columns import column_names, read_columns
from seqkeras.data.json_lines import json_objects
from seqkeras.data.left_out import usable
from seqkeras.data.texts import DataError, holds_half_a_character, is_blank, read_lines, suffix_of
from seqkeras.serving.categories import category_text

LETTERS = "ABCDEFGH"
SWAG = ("sent1", "label", "sent2")  # text, answer, and what begins each choice


class Names(NamedTuple):
    """The columns of a table: text, choices, answer; none for a known format."""

    text: str = "text"
    choices: tuple[str, ...] = ()
    answer: str = "answer"


class Choices(NamedTuple):
    """A text with choices, of which one is right.

    Attributes:
        where: place in the file, for errors.
        text: the text before the choices.
        choices: the choices, two at least.
        answer: index of the right choice.

    Example:
        >>> from seqkeras.data import Choices
        >>> row = Choices("quiz.jsonl, line 1", "The sky is", ("blue", "green"), answer=0)
        >>> row.choices[row.answer]
        'blue'
    """

    where: str
    text: str
    choices: tuple[str, ...]
    answer: int


class Read(NamedTuple):
    """The rows of a file, and what was wrong with those that are left out."""

    rows: list[Choices]
    left_out: list[str]


class NameOptions(NamedTuple):
    """The options that give `Names`, for errors."""

    text: str
    choices: str
    answer: str


def read_choices(
    path: Path | str,
    names: Names | None = None,
    skip_bad: bool = False,
    options: NameOptions | None = None,
    has_token: Callable[[str], bool] | None = None,
) -> Read:
    """Return the texts with choices of a file.

    Args:
        path: path of the file.
        names: `Names` of the columns, where a table has neither SWAG's form nor ARC's.
        skip_bad: leave out rows that can not be used; otherwise the first such row is an error.
        options: `NameOptions`, the options that give the names, for errors; None for no options.
        has_token: a function: text -> whether a tokenizer finds a token in it; None: any does.

    Returns:
        `Read`, one row at least.

    Raises:
        DataError: if the file can not be read, is in none of the forms, or a row has fewer than two
            choices, an empty one before others, or no choice that is right. It names the line.

    Example:
        >>> import json, pathlib
        >>> from seqkeras.data import read_choices
        >>> row = {"text": "The sky is", "choices": ["blue", "green"], "answer": 0}
        >>> _ = pathlib.Path("quiz.jsonl").write_text(json.dumps(row))
        >>> read_choices("quiz.jsonl").rows[0].choices
        ('blue', 'green')
    """
    names = names or Names()
    is_lines = suffix_of(path) == ".jsonl" and not names.choices
    if is_lines and not {*SWAG} <= {*column_names(path)}:
        rows = _of_json_lines(path, names)
    else:
        rows = _of_table(path, names, options)
    choices = functools.partial(_choices, has_token)
    return Read(*usable(path, rows, choices, "row", skip_bad))


def _of_table(path, names, options):
    """Yield (where, text, choices, labels of the choices, answer)."""
    columns = column_names(path)
    endings = [f"ending{number}" for number in range(len(columns)) if f"ending{number}" in columns]
    if endings and not names.choices and {*SWAG} <= {*columns}:
        form, labels = SWAG, endings
    else:
        labels = names.choices or [letter for letter in LETTERS if letter in columns]
        text = "question" if not names.choices and "question" in columns else names.text
        form = text, names.answer
    if not labels:
        by_option = f" by {options.choices}" if options else ""
        raise DataError(
            f"{path}: there are no columns of choices, ending0 as of SWAG or A as of ARC; name "
            f"them{by_option}, of {', '.join(columns)}."
        )
    every = (*form, *labels)
    by = None
    if options is not None and form is not SWAG:
        by = options.text, options.answer, *[options.choices] * len(labels)
    for line, values in read_columns(path, every, may_be_empty=every, options=by):
        (text, answer, *begins), choices = values[: len(form)], values[len(form) :]
        for begin in begins:
            choices = [f"{begin} {choice}" if choice.strip() else "" for choice in choices]
        yield f"{path}, line {line}", text, choices, labels, answer


def _of_json_lines(path, names):
    for line, row in json_objects(path, read_lines(path)):
        where = f"{path}, line {line}"
        question, choices = row.get("question"), row.get("choices")
        if isinstance(question, dict):
            question, choices = question.get("stem"), question.get("choices")
        text, answer = row.get(names.text, question), row.get(names.answer, row.get("answerKey"))
        labels, choices = _labelled(choices)
        lists = [text], labels, choices
        if (
            not all(isinstance(item, list) for item in lists)
            or not all(isinstance(item, str) for item in itertools.chain(*lists))
            or len(labels) != len(choices)
            or type(answer) not in (int, float, str)
        ):
            raise DataError(
                f'{where}: expected {{"text", "choices": [texts], "answer"}}; or the keys of SWAG: '
                '"sent1", "sent2", "ending0", "label"; or of ARC: "question", "choices": {"text", '
                '"label"}, "answerKey", or "question": {"stem", "choices"}, "answerKey".'
            )
        yield where, text, choices, labels, answer


def _labelled(choices):
    """Return labels and the texts of choices: two lists, if the choices have one of the forms."""
    if isinstance(choices, dict):
        return choices.get("label"), choices.get("text")
    if not isinstance(choices, list):
        return [], None
    if all(isinstance(choice, dict) for choice in choices):
        return [choice.get("label") for choice in choices], [
            choice.get("text") for choice in choices
        ]
    return [str(index) for index in range(len(choices))], choices


def _choices(has_token, where, text, choices, labels, answer):
    for value in (text, *choices):
        if holds_half_a_character(value):
            raise DataError(f"{where}: {value!r:.40} holds half of a character.")
    if is_blank(text):
        raise DataError(f"{where}: the text is blank.")
    count = max((index for index, value in enumerate(choices, 1) if not is_blank(value)), default=0)
    for index in range(count):
        if is_blank(choices[index]):
            raise DataError(f"{where}: the choice {labels[index]} is empty, and others follow.")
    if has_token is not None:
        for name, value in (("text", text), *zip(map("choice {}".format, labels), choices[:count])):
            if not has_token(value):
                raise DataError(f"{where}: the {name} has no token: {value!r:.40}.")
    if count < 2:
        raise DataError(f"{where}: there must be two choices at least; found {count}.")
    written, names = answer, [*map(category_text, labels)]
    answer = category_text(written)
    if written in labels:
        right = labels.index(written)
    elif names.count(answer) == 1:
        right = names.index(answer)
    else:
        right = int(answer) if answer.isascii() and answer.isdecimal() else count
    if right >= count:
        raise DataError(
            f"{where}: the right choice must be one of {', '.join(labels[:count])}, or its place "
            f"from 0; found {answer!r:.40}."
        )
    return Choices(where, text, tuple(choices[:count]), right)

"""Questions about contexts, whose answers are spans of these: SQuAD's files.

    .json   SQuAD 1.1 and 2.0, as published: {"data": [{"title", "paragraphs": [{"context", "qas":
            [{"id", "question", "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}
    .jsonl  an object a line, as Hugging Face's datasets have it: {"question", "context",
            "answers": {"text": [...], "answer_start": [...]}}; with empty lists it has no answer

Either may be packed (.gz). A question of which `is_impossible` is true has no answer, whatever its
`plausible_answers` are. Answers begin at an offset that counts code points; files that count bytes
or units of UTF-16 are recognised, and read by `offsets`.

Reference: Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250; 2018,
https://arxiv.org/abs/1806.03822
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from seqkeras.data.json_lines import json_objects
from seqkeras.data.left_out import usable
from seqkeras.data.texts import DataError, holds_half_a_character, is_blank, read_lines, read_text
from seqkeras.serving.parsing import MOST_OF_LINE, parse_json

ENCODINGS = {"bytes": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}  # what is counted; bytes of a unit
OFFSETS = ("characters", *ENCODINGS)
UNITS = {"characters": "code points", "bytes": "bytes of UTF-8", "utf-16": "units of UTF-16"}


class Answer(NamedTuple):
    """A text that stands in the context from an index on.

    Attributes:
        text: the answer.
        start: index of its first code point in the context.

    Example:
        >>> from seqkeras.data import Answer
        >>> context = "The tower stands in Paris."
        >>> answer = Answer("Paris", start=20)
        >>> context[answer.start :].startswith(answer.text)
        True
    """

    text: str
    start: int


class Question(NamedTuple):
    """A question about a context, and its right answers.

    Attributes:
        where: place in the file, for errors.
        question: the question.
        context: the text that may hold the answer.
        answers: the right answers; none where the context has no answer.

    Example:
        >>> from seqkeras.data import Answer, Question
        >>> context, answers = "The tower stands in Paris.", (Answer("Paris", 20),)
        >>> question = Question("tower.json, line 1", "Where is the tower?", context, answers)
        >>> question.answers[0].text
        'Paris'
    """

    where: str
    question: str
    context: str
    answers: tuple[Answer, ...]


class Questions(NamedTuple):
    """The questions of a file, and what was wrong with those that are left out."""

    questions: list[Question]
    left_out: list[str]


def read_questions(
    path: Path | str,
    offsets: str = "characters",
    skip_bad: bool = False,
    has_token: Callable[[str], bool] | None = None,
) -> Questions:
    """Return the questions of a file, with their answers.

    Args:
        path: path of the file.
        offsets: what `answer_start` counts, one of `OFFSETS`.
        skip_bad: leave out questions that can not be used; without it the first is an error.
        has_token: a function: text -> whether a tokenizer finds a token in it; None: any does.

    Returns:
        `Questions`, one at least.

    Raises:
        DataError: if the file can not be read, is in another form, or a question can not be used:
            it is blank or has no token, has no answer and does not say so, or has an answer that is
            not at its offset. The message names article, paragraph and question, or the line.

    Example:
        >>> import json, pathlib
        >>> from seqkeras.data import read_questions
        >>> row = {"question": "Where?", "context": "In Paris.", "answers": {"text": ["Paris"]}}
        >>> row["answers"]["answer_start"] = [3]
        >>> _ = pathlib.Path("tower.jsonl").write_text(json.dumps(row))
        >>> read_questions("tower.jsonl").questions[0].answers
        (Answer(text='Paris', start=3),)
    """
    name = Path(path).name.lower().removesuffix(".gz")
    if name.endswith(".jsonl"):
        rows = _of_json_lines(path)
    elif name.endswith(".json"):
        rows = _of_squad(path, read_text(path, in_lines=False))
    else:
        raise DataError(f"{path}: the name must end in .json or .jsonl.")
    question = functools.partial(_question, offsets, has_token)
    return Questions(*usable(path, rows, question, "question", skip_bad))


def _of_squad(path, text):
    """Yield (where, {"question", "context", "answers", "is_impossible"})."""
    try:
        content = parse_json(text)
    except ValueError as error:
        lines = "; a file of JSON lines must be named .jsonl" if _holds_lines(path) else ""
        raise DataError(f"{path}: not JSON: {error}{lines}.") from error
    articles = _part(content, "data", list, path)
    for number, article in enumerate(articles, start=1):
        where = f"{path}, article {number}"
        title = article.get("title") if isinstance(article, dict) else None
        if isinstance(title, str) and title:
            where += f" ({title:.40})"
        for count, paragraph in enumerate(_part(article, "paragraphs", list, where), start=1):
            inner = f"{where}, paragraph {count}"
            context = _part(paragraph, "context", str, inner)
            for index, row in enumerate(_part(paragraph, "qas", list, inner), start=1):
                location = f"{inner}, question {index}"
                _part(row, "question", str, location)
                if "id" in row:
                    location += f" ({row['id']!s:.40})"
                answers = row.get("answers", [])
                if not isinstance(answers, list):
                    raise DataError(f"{location}: 'answers' must be a list.")
                yield location, row | {"context": context, "answers": answers}


def _holds_lines(path):
    """Return whether the first line of a file is a complete object."""
    try:
        return bool(next(json_objects(path, read_lines(path))))
    except DataError:
        return False


def _of_json_lines(path):
    for line, row in json_objects(path, read_lines(path)):
        where = f"{path}, line {line}"
        for name in ("question", "context"):
            _part(row, name, str, where)
        answers = _part(row, "answers", dict | list, where)
        if isinstance(answers, dict):
            texts, starts = (_part(answers, key, list, where) for key in ("text", "answer_start"))
            if len(texts) != len(starts):
                raise DataError(
                    f"{where}: needs one 'answer_start' for each 'text'; found {len(texts)} and "
                    f"{len(starts)}."
                )
            answers = [
                {"text": answer, "answer_start": start}
                for answer, start in zip(texts, starts, strict=True)
            ]
        yield where, {"is_impossible": not answers} | row | {"answers": answers}


def _part(content, name, kind, where):
    """Return a value of a dictionary, of a kind."""
    value = content.get(name) if isinstance(content, dict) else None
    if not isinstance(value, kind):
        words = {list: "a list", str: "a text"}.get(kind, "an object of lists")
        raise DataError(f"{where}: expected an object in which {name!r} is {words}.")
    return value


def _question(offsets, has_token, where, values):
    question, context = values["question"], values["context"]
    for name, text in (("question", question), ("context", context)):
        if len(text) > MOST_OF_LINE:
            raise DataError(
                f"{where}: the {name} has {len(text):,} characters; the most are {MOST_OF_LINE:,}: "
                "cut it into several, or remove it."
            )
        if holds_half_a_character(text):
            raise DataError(f"{where}: the {name} holds half of a character.")
        if is_blank(text):
            raise DataError(f"{where}: the {name} is blank.")
        if has_token is not None and not has_token(text):
            raise DataError(f"{where}: the {name} has no token: {text!r:.40}.")
    impossible = values.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise DataError(f"{where}: 'is_impossible' must be true or false.")
    if impossible:
        return Question(where, question, context, ())
    if not values["answers"]:
        raise DataError(
            f"{where}: there is no answer; a question that has none says so by "
            '"is_impossible": true.'
        )
    return Question(
        where,
        question,
        context,
        tuple(_answer(where, context, answer, offsets) for answer in values["answers"]),
    )


def _answer(where, context, answer, offsets):
    text = _part(answer, "text", str, where)
    start = answer.get("answer_start")
    if is_blank(text):
        raise DataError(f"{where}: an answer is blank.")
    if type(start) is not int or start < 0:
        raise DataError(
            f"{where}: 'answer_start' of the answer {text!r:.40} must be a number from 0; found "
            f"{start!r:.40}."
        )
    offset = _place(context, start, offsets)
    if offset is not None and context.startswith(text, offset):
        return Answer(text, offset)
    raise DataError(f"{where}: {_why_not_there(context, text, start, offsets)}")


def _place(context, start, offsets):
    """Return the index of a code point, of an offset that counts other units; None if it is
    none."""
    if offsets == "characters":
        return start
    encoding, size = ENCODINGS[offsets]
    before = context.encode(encoding)[: start * size]
    try:
        return len(before.decode(encoding))
    except UnicodeDecodeError:
        return None


def _why_not_there(context, text, start, offsets):
    said = f"the answer {text!r:.40} is not at answer_start {start}"
    if text not in context:
        return f"{said}, nor elsewhere in its context."
    for others in OFFSETS:
        offset = _place(context, start, others)
        if others != offsets and offset is not None and context.startswith(text, offset):
            return (
                f"{said}, counted in {UNITS[offsets]}; it is there counted in {UNITS[others]}: "
                f"choose --offsets {others}."
            )
    return f"{said}; it stands at {context.index(text)}."

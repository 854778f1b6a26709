"""Prompts and their answers, from files of the user's: pairs, or conversations with turns.

    .jsonl        {"prompt": ..., "answer": ...} a line, or
                  {"messages": [{"role": "user", "content": ...}, {"role": "assistant", ...}, ...]}
    .csv, .tsv    columns "prompt" and "answer", as `seqkeras.data.columns` reads them

Each turn of the assistant is an answer to all turns before it.
"""

from pathlib import Path

from seqkeras.data.columns import read_columns
from seqkeras.data.json_lines import json_objects
from seqkeras.data.texts import DataError, read_text, suffix_of
from serving.text import checked_messages

MESSAGES = "messages"


def read_dialogues(path, names=("prompt", "answer")):
    """The prompts of a file and their answers.

    Args:
        path: of the file.
        names: of the columns, or keys, of prompts and answers.

    Returns:
        A list of (number of the line, turns before the answer, answer), one at least. The turns are
        (role, content) each.

    Raises:
        DataError: if the file can not be read, or a line holds something else.
    """
    path = Path(path)
    if suffix_of(path) != ".jsonl":
        return [
            (line, [("user", prompt)], answer)
            for line, (prompt, answer) in read_columns(path, names)
        ]
    rows = []
    for line, row in json_objects(path, read_text(path)):
        rows += [(line, *turn) for turn in _turns(row, f"{path}, line {line}", names)]
    return rows


def _turns(row, where, names):
    """Yield (turns before, answer) of a line."""
    if {*row} == {MESSAGES}:
        yield from _of_messages(row[MESSAGES], where)
        return
    if {*row} != {*names}:
        raise DataError(
            f"{where}: expected an object of {names[0]!r} and {names[1]!r}, or of {MESSAGES!r}, "
            f"and nothing else; found {', '.join(map(repr, row)):.80}."
        )
    for name in names:
        if not isinstance(row[name], str) or not row[name].strip():
            raise DataError(f"{where}: {name!r} must be a text that is not blank.")
    prompt, answer = (row[name] for name in names)
    yield [("user", prompt)], answer


def _of_messages(messages, where):
    try:
        turns = checked_messages(messages, where)
    except ValueError as error:
        raise DataError(str(error)) from error
    answers = [place for place, (role, _) in enumerate(turns) if role == "assistant"]
    if not answers or answers[-1] != len(turns) - 1:
        raise DataError(f"{where}: the last message must be the assistant's.")
    for place in answers:
        yield turns[:place], turns[place][1]

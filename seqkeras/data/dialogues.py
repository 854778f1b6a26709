"""Prompts and their answers, from files of the user's: pairs, or conversations with turns.

    .jsonl        {"prompt": ..., "answer": ...} a line, or
                  {"messages": [{"role": "user", "content": ...}, {"role": "assistant", ...}, ...]}
    .csv, .tsv    columns "prompt" and "answer", as `seqkeras.data.columns` reads them

Each turn of the assistant is an answer to all turns before it.
"""

from pathlib import Path

from seqkeras.data.columns import read_columns
from seqkeras.data.texts import DataError, lines_of, read_text, suffix_of
from serving.parsing import parse_json
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
    for line, content in enumerate(lines_of(read_text(path)), start=1):
        if content.strip():
            rows += [(line, *turn) for turn in _turns(content, f"{path}, line {line}", names)]
    return rows


def _turns(content, where, names):
    """Yield (turns before, answer) of a line."""
    try:
        row = parse_json(content)
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {error}.") from error
    keys = set(row) if isinstance(row, dict) else None
    if keys == {MESSAGES}:
        yield from _of_messages(row[MESSAGES], where)
        return
    if keys != set(names):
        found = ", ".join(map(repr, row)) if isinstance(row, dict) else type(row).__name__
        raise DataError(
            f"{where}: expected an object of {names[0]!r} and {names[1]!r}, or of {MESSAGES!r}, "
            f"and nothing else; found {found:.80}."
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

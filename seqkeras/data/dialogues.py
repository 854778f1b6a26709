"""Prompts and their answers, from files of the user's: pairs, or conversations with turns.

    .jsonl        {"prompt": ..., "answer": ...} a line, or
                  {"messages": [{"role": "user", "content": ...}, {"role": "assistant", ...}, ...]}
    .csv, .tsv    columns "prompt" and "answer", as `seqkeras.data.columns` reads them

Each turn of the assistant is an answer to all turns before it. As in OpenAI's files for
fine-tuning, a turn of the assistant with "weight": 0 is none: it only stands before later answers.
A message may have a "name", which is not read.

Reference: https://platform.openai.com/docs/guides/supervised-fine-tuning
"""

from pathlib import Path

from seqkeras.data.columns import read_columns
from seqkeras.data.json_lines import json_objects
from seqkeras.data.texts import DataError, read_lines, suffix_of
from seqkeras.serving.text import checked_messages

MESSAGES = "messages"
NAME, WEIGHT = "name", "weight"  # of a message, beside role and content


def read_dialogues(
    path: Path | str, names: tuple[str, str] = ("prompt", "answer")
) -> list[tuple[int, list[tuple[str, str]], str]]:
    """Return the prompts of a file and their answers.

    Args:
        path: path of the file.
        names: names of the columns, or keys, of prompts and answers.

    Returns:
        A list of (number of the line, turns before the answer, answer), one at least. The turns are
        (role, content) each.

    Raises:
        DataError: if the file can not be read, or a line holds something else.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_dialogues
        >>> _ = pathlib.Path("chat.csv").write_text("prompt,answer\\nHello?,Hi.\\n")
        >>> read_dialogues("chat.csv")
        [(2, [('user', 'Hello?')], 'Hi.')]
    """
    path = Path(path)
    if suffix_of(path) != ".jsonl":
        return [
            (line, [("user", prompt)], answer)
            for line, (prompt, answer) in read_columns(path, names)
        ]
    rows = []
    for line, row in json_objects(path, read_lines(path)):
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
        turns = checked_messages(_without_extras(messages), where)
    except ValueError as error:
        raise DataError(str(error)) from error
    if turns[-1][0] != "assistant":
        raise DataError(f"{where}: the last message must be the assistant's.")
    learned = [
        _is_learned(message, f"{where}: messages[{n}]") for n, message in enumerate(messages)
    ]
    if not any(learned):
        raise DataError(f"{where}: every answer has the weight 0; remove the line.")
    for index, (_, content) in enumerate(turns):
        if learned[index]:
            yield turns[:index], content


def _without_extras(messages):
    """Return messages without names and weights; what is no message stays."""
    if not isinstance(messages, list):
        return messages
    return [
        {key: value for key, value in message.items() if key not in (NAME, WEIGHT)}
        if isinstance(message, dict)
        else message
        for message in messages
    ]


def _is_learned(message, where):
    """Return whether a message is an answer to learn."""
    is_answer, weight = message["role"] == "assistant", message.get(WEIGHT)
    if weight is not None and (not is_answer or isinstance(weight, bool) or weight not in (0, 1)):
        raise DataError(
            f"{where}: weight must be 0, not learned, or 1, in a message of the assistant; "
            f"received {weight!r:.40} in one of the {message['role']}."
        )
    return is_answer and weight != 0

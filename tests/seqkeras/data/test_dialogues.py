"""Prompts and answers of files: what they hold, and what is wrong with a line."""

import json

import pytest

from seqkeras.data.dialogues import read_dialogues
from seqkeras.data.texts import DataError

USER, ASSISTANT = {"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello."}


def written(path, *rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_each_turn_of_the_assistant_is_an_answer_to_all_before(tmp_path):
    system = {"role": "system", "content": "Be short."}
    rows = [
        {"prompt": "1 + 1?", "answer": "2"},
        "",
        {"messages": [system, USER, ASSISTANT, {**USER, "content": "Bye"}, ASSISTANT]},
    ]
    found = read_dialogues(written(tmp_path / "rows.jsonl", *rows))
    before = [("system", "Be short."), ("user", "Hi!")]
    assert found == [
        (1, [("user", "1 + 1?")], "2"),
        (3, before, "Hello."),
        (3, [*before, ("assistant", "Hello."), ("user", "Bye")], "Hello."),
    ]


def test_an_answer_of_weight_0_stands_before_later_ones_alone(tmp_path):
    user = {**USER, "name": "bob"}
    answers = [{**ASSISTANT, "content": f"answer {weight}", "weight": weight} for weight in (0, 1)]
    rows = {"messages": [user, answers[0], user, answers[1], user, {**ASSISTANT, "weight": None}]}
    before = [("user", "Hi!"), ("assistant", "answer 0"), ("user", "Hi!")]
    assert read_dialogues(written(tmp_path / "rows.jsonl", rows)) == [
        (1, before, "answer 1"),
        (1, [*before, ("assistant", "answer 1"), ("user", "Hi!")], "Hello."),
    ]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_columns_have_the_names_that_are_asked_for(suffix, tmp_path):
    separator = {".csv": ",", ".tsv": "\t"}.get(suffix)
    rows = [{"article": "long text", "summary": "short"}]
    if separator:
        rows = [separator.join(row) for row in (rows[0], rows[0].values())]
    found = read_dialogues(written(tmp_path / f"rows{suffix}", *rows), ("article", "summary"))
    assert [row[1:] for row in found] == [([("user", "long text")], "short")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not JSON: "),
        ("[1]", "line 2: expected a JSON object, one a line."),
        ({"prompt": "a", "reply": "b"}, "and nothing else; found 'prompt', 'reply'."),
        ({"prompt": "a", "answer": "b", "id": 1}, "nothing else; found 'prompt', 'answer', 'id'."),
        ({"prompt": "a", "answer": " "}, "line 2: 'answer' must be a text that is not blank."),
        ({"prompt": 3, "answer": "b"}, "line 2: 'prompt' must be a text that is not blank."),
        ({"messages": []}, "line 2: messages must be a list that is not empty."),
        ({"messages": [USER]}, "line 2: the last message must be the assistant's."),
        ({"messages": [ASSISTANT]}, "messages[0]: role must be system or user here; received 'as"),
        ({"messages": [USER, USER]}, "messages[1]: role must be assistant here; received 'user'."),
        ({"messages": [{"role": "user"}]}, "messages[0] must have a role and a content alone; rec"),
        (
            {"messages": [USER, {**ASSISTANT, "weight": 0}]},
            "every answer has the weight 0; remove the line.",
        ),
        ({"messages": [USER, {**ASSISTANT, "weight": 0.5}]}, "must be 0, not learned, or 1, in a"),
        ({"messages": [USER, {**ASSISTANT, "weight": True}]}, "received True in one of the assis"),
        ({"messages": [{**USER, "weight": 1}, ASSISTANT]}, "received 1 in one of the user."),
        ({"messages": "Hi"}, "line 2: messages must be a list that is not empty."),
        ({"messages": ["Hi"]}, "messages[0] must have a role and a content alone; received 'Hi'"),
        ({"messages": [{**USER, "content": ""}]}, "content must be a string that is not blank."),
    ],
)
def test_a_line_that_holds_something_else_is_named(row, message, tmp_path):
    path = written(tmp_path / "rows.jsonl", {"prompt": "a", "answer": "b"}, row)
    with pytest.raises(DataError) as error:
        read_dialogues(path)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{path}, line 2: ")

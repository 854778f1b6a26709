"""Conversations as prompts, beside what is written by hand."""

import pytest

from seqkeras.serving.text import Turns

TURNS = Turns("U:", "A:", "S:", "|")


def test_a_text_is_a_turn_of_the_user():
    assert TURNS.prompt("hello", "prompt") == "U:hello|A:"
    assert Turns().prompt("hello", "prompt") == "User:\nhello\nAssistant:\n"


def test_a_conversation_is_its_turns_and_the_begin_of_the_answer():
    roles = ["system", "user", "assistant", "user"]
    messages = [{"role": role, "content": str(place)} for place, role in enumerate(roles)]
    assert TURNS.prompt({"messages": messages}, "prompt") == "S:0|U:1|A:2|U:3|A:"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, '^prompt must be a string or {"messages": .*}; received a int.$'),
        ({"text": "a"}, "^prompt must be a string or .*; received a dict.$"),
        ({"messages": [{"role": "system", "content": "a"}]}, "^prompt: the last message must be t"),
        ({"messages": "a"}, "^prompt: messages must be a list that is not empty.$"),
    ],
)
def test_what_is_no_conversation_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        TURNS.prompt(given, "prompt")

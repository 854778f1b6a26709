"""A conversation as the one text that a language model goes on from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AFTER = {  # who may speak after a turn of whom
    None: ("system", "user"),
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user",),
}


@dataclass(frozen=True)
class Turns:
    """The strings around each turn of a conversation.

        turn(role, content) = role's text + content + end
        prompt = turn(role 1, content 1) + ... + turn(role n, content n) + assistant's text

    The answer is what follows the prompt.

    Attributes:
        user, assistant, system: what stands before a turn of that role.
        end: what stands after each turn.

    Example:
        >>> from seqkeras.serving.text import Turns
        >>> Turns(user="U: ", assistant="A: ").prompt("Hello?", "the input")
        'U: Hello?\\nA: '
        >>> Turns(user="U: ", assistant="A: ").text([("user", "Hello?"), ("assistant", "Hi.")])
        'U: Hello?\\nA: Hi.\\n'
    """

    user: str = "User:\n"
    assistant: str = "Assistant:\n"
    system: str = "System:\n"
    end: str = "\n"

    def prompt(self, given: Any, name: str) -> str:
        """Return the prompt of a text, which is one turn of the user, or of a conversation.

        Args:
            given: a string; or {"messages": [{"role": ..., "content": ...}, ...]}, whose last
                message is the user's.
            name: name of the input, for errors.

        Raises:
            ValueError: if it is neither; its text begins with `name`.
        """
        if isinstance(given, Mapping) and set(given) == {"messages"}:
            messages = checked_messages(given["messages"], name)
            if messages[-1][0] != "user":
                raise ValueError(
                    f"{name}: the last message must be the user's; received {messages[-1][0]}'s."
                )
        elif isinstance(given, str):
            messages = [("user", given)]
        else:
            raise ValueError(
                f'{name} must be a string or {{"messages": [...]}}; received a '
                f"{type(given).__name__}."
            )
        return self.text(messages) + self.assistant

    def text(self, messages: Sequence[tuple[str, str]]) -> str:
        """Return the text of turns, (role, content) each."""
        before = {"user": self.user, "assistant": self.assistant, "system": self.system}
        return "".join(before[role] + content + self.end for role, content in messages)


def checked_messages(messages: Any, name: str) -> list[tuple[str, str]]:
    """Return the (role, content) of messages.

    A message of the system may be the first. Then user and assistant take turns.

    Args:
        messages: a list of {"role": ..., "content": ...}.
        name: name of what holds them, for errors.

    Returns:
        A list of pairs (role, content).

    Raises:
        ValueError: if they are not such messages; its text begins with `name`.

    Example:
        >>> from seqkeras.serving.text import checked_messages
        >>> checked_messages([{"role": "user", "content": "Hello?"}], "the input")
        [('user', 'Hello?')]
        >>> checked_messages([{"role": "assistant", "content": "Hi."}], "the input")
        Traceback (most recent call last):
            ...
        ValueError: the input: messages[0]: role must be system or user here; received 'assistant'.
    """
    if not isinstance(messages, list) or not messages:
        raise ValueError(f"{name}: messages must be a list that is not empty.")
    checked = []
    for index, message in enumerate(messages):
        where = f"{name}: messages[{index}]"
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            keys = sorted(map(str, message)) if isinstance(message, Mapping) else message
            raise ValueError(
                f"{where} must have a role and a content alone; received {keys!r:.80}."
            )
        role, content = message["role"], message["content"]
        if not isinstance(content, str) or not content.strip():
            raise ValueError(f"{where}: content must be a string that is not blank.")
        expected = AFTER[checked[-1][0] if checked else None]
        if role not in expected:
            raise ValueError(
                f"{where}: role must be {' or '.join(expected)} here; received {role!r:.40}."
            )
        checked.append((role, content))
    return checked

"""The share of tokens that a training's vocabularies do not know, told before it begins."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.runs import RunError
from seqkeras.terminal import one_line
from seqkeras.tokenizers.unknown import unknown_tokens
from seqkeras.training.console import console

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.tokenizers.unknown import UnknownTokens
    from seqkeras.training.task import Task

TARGETS = "targets"
MOST_TEXTS = 100_000  # of a use, in which unknown tokens are counted
MOST_CHARACTERS = 2**25  # of these texts; the last one may have more
SHOWN = 5  # unknown tokens in a message


def tell_unknown_tokens(
    task: Task, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer], source: str
) -> dict[str, UnknownTokens]:
    """Print a line if the vocabularies do not know all tokens of examples.

    Args:
        task: a `seqkeras.training.task.Task`.
        examples: as the task reads them.
        tokenizers: role -> tokenizer.
        source: the name of the examples, such as "training".

    Returns:
        `UnknownTokens` of each use of `Reading.texts_read`, by its name.
    """
    unknown_by_use, texts = {}, {}
    for use, role, some in task.reading.texts_read(examples, tokenizers):
        texts.setdefault((use, role), []).append(some)
    for (use, role), parts in texts.items():
        unknown = unknown_tokens(tokenizers[role], _few(itertools.chain.from_iterable(parts)))
        if use not in unknown_by_use or unknown.share > unknown_by_use[use].share:
            unknown_by_use[use] = unknown
    shares = [
        f"{unknown.share:.2%} of the tokens of {use} ({_listed(unknown)})"
        for use, unknown in unknown_by_use.items()
        if unknown.count
    ]
    if shares:
        line = one_line(f"{source}: the vocabulary does not know {' and '.join(shares)}")
        console.print(f"  {line}")
    return unknown_by_use


def _few(texts):
    """Yield texts up to the limits."""
    left = MOST_CHARACTERS
    for text in itertools.islice(texts, MOST_TEXTS):
        if left <= 0:
            break
        yield text
        left -= len(text)


def require_known_targets(
    task: Task, unknown_tokens: Mapping[str, UnknownTokens], most: float
) -> None:
    """Raise a `RunError` if more than a share of the tokens of targets is unknown: an answer holds
    none of them.

    Args:
        task: a `seqkeras.training.task.Task`.
        unknown_tokens: the result of `tell_unknown_tokens`.
        most: the share, from 0 to 1.
    """
    unknown = unknown_tokens.get(TARGETS)
    if unknown is not None and unknown.share > most:
        raise RunError(
            f"{task.name}: the vocabulary does not know {unknown.share:.2%} of the tokens of "
            f"{TARGETS}, more than --unknown-targets {most}; an answer can not hold them. The most "
            f"frequent are {_listed(unknown)}. {task.reading.way_out_of_unknown}"
        )


def _listed(unknown):
    tokens = [f"{token!r:.40}" for token in unknown.most_frequent[:SHOWN]]
    return ", ".join([*tokens, *(["…"] if len(unknown.most_frequent) > SHOWN else [])])

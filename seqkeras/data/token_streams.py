"""Plain text as one stream of token ids, as a language model reads it.

    characters, byte pairs      every character of a text is part of a token, its line ends too
    words, SentencePiece        white space is not; each line is a separate text, which <eos> ends

Texts stand one after the other, with <eos> between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.serving.text import SentencePieces, WordTable

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer

CHUNK = 2**20  # characters that are encoded at once: libraries take much memory for a token
BEFORE_WORD = re.compile(r"(?<=\S)(?= \S)")  # where no tokenizer here has a token across


def keeps_white_space(tokenizer: Tokenizer) -> bool:
    """Return whether white space is part of the tokens, so that a text is their texts side by
    side."""
    return not isinstance(tokenizer, SentencePieces | WordTable)


def token_stream(texts: Sequence[str], tokenizer: Tokenizer, end_id: int) -> np.ndarray:
    """Return the token ids of texts.

    Args:
        texts: a list of strings.
        tokenizer: a tokenizer of `seqkeras.tokenizers`.
        end_id: the id of <eos>.

    Returns:
        (tokens,) int32.

    Example:
        >>> from seqkeras.data import token_stream
        >>> from seqkeras.tokenizers import learn_words
        >>> table = learn_words(["to be or not to be"], vocab_size=10)
        >>> token_stream(["to be\\nor not"], table, end_id=3).tolist()  # <eos> ends each line
        [5, 4, 3, 7, 6, 3]
    """
    whole, parts, end = keeps_white_space(tokenizer), [], np.array([end_id], "int32")
    for text in texts:
        if whole and parts:
            parts.append(end)
        for piece in pieces_read(text, tokenizer):
            parts.append(np.array(tokenizer.encode(piece), "int32"))
            if not whole:
                parts.append(end)
    return np.concatenate([np.zeros(0, "int32"), *parts])


def pieces_read(text: str, tokenizer: Tokenizer) -> list[str]:
    """Return the pieces of a text that a tokenizer reads one by one: its lines, or long parts where
    white space is part of the tokens."""
    return _chunks(text) if keeps_white_space(tokenizer) else _lines(text)


def _lines(text):
    return text.removesuffix("\n").split("\n")


def _chunks(text):
    start = 0
    while start < len(text):
        match = BEFORE_WORD.search(text, start + CHUNK)
        end = match.start() if match else len(text)
        yield text[start:end]
        start = end

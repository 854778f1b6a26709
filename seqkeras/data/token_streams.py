"""Plain text as one stream of token ids, as a language model reads it.

    characters, byte pairs      every character of a text is part of a token, its line ends too
    words, SentencePiece        white space is not; each line is a separate text, which <eos> ends

Texts stand one after the other, with <eos> between them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.data.stored import GrowingArray
from seqkeras.serving.text import SentencePieces, WordTable
from seqkeras.tokenizers.encode_all import encode_all

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer

CHUNK = 2**20  # characters that are encoded at once: libraries take much memory for a token
AT_ONCE = 10_000  # lines that are encoded at once
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
        (tokens,) int32; many lie in a file (`seqkeras.data.stored`).

    Example:
        >>> from seqkeras.data import token_stream
        >>> from seqkeras.tokenizers import learn_words
        >>> table = learn_words(["to be or not to be"], vocab_size=10)
        >>> token_stream(["to be\\nor not"], table, end_id=3).tolist()  # <eos> ends each line
        [5, 4, 3, 7, 6, 3]
    """
    whole, stream = keeps_white_space(tokenizer), GrowingArray()
    stream.append(np.zeros(0, "int32"))
    for number, text in enumerate(texts):
        if whole and number:
            stream.append(np.array([end_id], "int32"))
        pieces = iter(pieces_read(text, tokenizer))
        while some := [*itertools.islice(pieces, 1 if whole else AT_ONCE)]:
            rows = encode_all(tokenizer, some)
            if not whole:
                rows = ([*row, end_id] for row in rows)
            stream.append(np.fromiter(itertools.chain.from_iterable(rows), "int32"))
    return stream.whole()


def pieces_read(text: str, tokenizer: Tokenizer) -> Iterable[str]:
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

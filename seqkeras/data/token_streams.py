"""Plain text as one stream of token ids, as a language model reads it.

    characters, byte pairs      every character of a text is part of a token, its line ends too
    words, SentencePiece        white space is not; each line is a separate text, which <eos> ends

Texts stand one after the other, with <eos> between them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.data.stored import GrowingArray
from seqkeras.data.texts import TextFile, parts_of
from seqkeras.serving.text import CharacterTable, SentencePieces, WordTable
from seqkeras.tokenizers.encode_all import Encoder

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer

CHUNK = 2**16  # characters that are encoded at once: libraries take much memory for a token
BEFORE_WORD = re.compile(r"(?<=\S)(?= \S)")  # where no tokenizer here has a token across
MOST = 2**22  # characters: longer texts without such a place are cut behind a line
AT_ONCE = 10_000  # lines that are encoded at once


def keeps_white_space(tokenizer: Tokenizer) -> bool:
    """Return whether white space is part of the tokens, so that a text is their texts side by
    side."""
    return not isinstance(tokenizer, SentencePieces | WordTable)


def token_stream(texts: Sequence[str | TextFile], tokenizer: Tokenizer, end_id: int) -> np.ndarray:
    """Return the token ids of texts.

    Args:
        texts: a list of strings, or of `seqkeras.data.texts.TextFile`s.
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
    whole, stream, encode = keeps_white_space(tokenizer), GrowingArray(), Encoder(tokenizer)
    stream.append(np.zeros(0, "int32"))
    for number, text in enumerate(texts):
        if whole and number:
            stream.append(np.array([end_id], "int32"))
        pieces = pieces_read(text, tokenizer)
        if isinstance(tokenizer, CharacterTable):
            parts = map(tokenizer.encode_long, pieces)
        else:
            parts = _encoded(pieces, encode, None if whole else end_id)
        for ids in parts:
            stream.append(ids)
    return stream.whole()


def _encoded(pieces, encode, end_id):
    """Yield the ids of pieces in arrays; `end_id`, unless it is None, stands behind each piece."""
    pieces = iter(pieces)
    while some := [*itertools.islice(pieces, 1 if end_id is None else AT_ONCE)]:
        rows = encode(some)
        if end_id is not None:
            rows = ([*row, end_id] for row in rows)
        yield np.fromiter(itertools.chain.from_iterable(rows), "int32")


def pieces_read(text: str | TextFile, tokenizer: Tokenizer) -> Iterable[str]:
    """Return the pieces of a text that a tokenizer reads one by one: its lines, or long parts where
    white space is part of the tokens."""
    return chunks(text) if keeps_white_space(tokenizer) else _lines(text)


def _lines(text):
    for part in parts_of(text):
        yield from part.removesuffix("\n").split("\n")


def chunks(text: str | TextFile) -> Iterator[str]:
    """Yield a text in long parts, of which the tokens are those of the text."""
    rest = ""
    for part in parts_of(text):
        rest, start = rest + part, 0
        while match := BEFORE_WORD.search(rest, start + CHUNK):
            yield rest[start : match.start()]
            start = match.start()
        rest = rest[start:]
        if len(rest) > MOST and (end := rest.rfind("\n") + 1):
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest

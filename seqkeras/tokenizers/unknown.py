"""The tokens of texts that a vocabulary does not know, and their number."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from seqkeras.serving.text import UNK, CharacterTable, Subwords, Tokenizer, WordTable
from seqkeras.tokenizers.encode_all import encode_all
from seqkeras.tokenizers.special import special_ids

AT_ONCE = 4096  # texts that are encoded together, of so many characters at most
CHARACTERS_AT_ONCE = 2**20
MOST_ANALYZED = 1000  # texts with unknown tokens in which these are looked for


class UnknownTokens(NamedTuple):
    """The result of `unknown_tokens`.

    Attributes:
        count: count of unknown tokens.
        total: total of all tokens.
        most_frequent: what stands in the texts for unknown tokens, the most frequent first.
    """

    count: int
    total: int
    most_frequent: tuple

    @property
    def share(self) -> float:
        """Unknown tokens by all, from 0 to 1."""
        return self.count / max(self.total, 1)


def unknown_tokens(tokenizer: Tokenizer, texts: Iterable[Any]) -> UnknownTokens:
    """Count the tokens that a vocabulary does not know.

    Args:
        tokenizer: one of `seqkeras.tokenizers`.
        texts: yields strings; for a table of words also tuples of words.

    Returns:
        `UnknownTokens`; of byte pairs and of a vocabulary without an unknown token none is unknown,
        and no text is read.

    Raises:
        ValueError: if the tokenizer can not read a text.
    """
    if isinstance(tokenizer, CharacterTable | WordTable):
        return _of_table(tokenizer, texts)
    unknown_id = special_ids(tokenizer).unknown_id
    if unknown_id is None or (isinstance(tokenizer, Subwords) and tokenizer.is_byte_level):
        return UnknownTokens(0, 0, ())
    count, total, analyzed, parts = 0, 0, 0, Counter()
    for some in _batches(texts):
        for text, token_ids in zip(some, encode_all(tokenizer, some), strict=True):
            total += len(token_ids)
            if unknown_id not in token_ids:
                continue
            count += token_ids.count(unknown_id)
            analyzed += 1
            if analyzed <= MOST_ANALYZED:
                parts.update(_unknown_parts(tokenizer.analyze(text), unknown_id))
    return UnknownTokens(count, total, _ranked(parts))


def _batches(texts):
    """Yield lists of texts that are encoded together."""
    some, size = [], 0
    for text in texts:
        some.append(text)
        size += len(text)
        if len(some) == AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield some
            some, size = [], 0
    yield some


def _of_table(table, texts):
    entries = Counter()
    for text in texts:
        if isinstance(text, tuple):
            entries.update(text)
        elif isinstance(table, CharacterTable):
            entries.update(unicodedata.normalize("NFC", text))
        else:
            entries.update(text[start:end] for start, end in table.places(text))
    unknown = Counter({word: count for word, count in entries.items() if table.lookup(word) == UNK})
    return UnknownTokens(unknown.total(), entries.total(), _ranked(unknown))


def _unknown_parts(encoding, unknown_id):
    [text] = encoding.texts
    for token_id, offset in zip(encoding.token_ids, encoding.offsets, strict=True):
        if token_id == unknown_id and offset is not None:
            yield text[slice(*offset)]


def _ranked(counts):
    """Return the keys of counts, the most frequent first, ties in Unicode order."""
    return tuple(sorted(counts, key=lambda token: (-counts[token], token)))

"""The tokens of texts that a vocabulary does not know, and their number."""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from seqkeras.serving.text import UNK, CharacterTable, Subwords, Tokenizer, WordTable
from seqkeras.tokenizers.encode_all import encode_all
from seqkeras.tokenizers.special import special_ids

AT_ONCE = 4096  # texts that are encoded together
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
        `UnknownTokens`; of byte pairs and of a vocabulary without an unknown token none is unknown.

    Raises:
        ValueError: if the tokenizer can not read a text.
    """
    if isinstance(tokenizer, CharacterTable | WordTable):
        return _of_table(tokenizer, texts)
    unknown_id = special_ids(tokenizer).unknown_id
    if isinstance(tokenizer, Subwords) and tokenizer.is_byte_level:
        unknown_id = None
    count, total, analyzed, parts, texts = 0, 0, 0, Counter(), iter(texts)
    while some := [*itertools.islice(texts, AT_ONCE)]:
        for text, token_ids in zip(some, encode_all(tokenizer, some), strict=True):
            total += len(token_ids)
            if unknown_id not in token_ids:
                continue
            count += token_ids.count(unknown_id)
            analyzed += 1
            if analyzed <= MOST_ANALYZED:
                parts.update(_unknown_parts(tokenizer.analyze(text), unknown_id))
    return UnknownTokens(count, total, _ranked(parts))


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

"""Texts that one tokenizer reads: that of an encoder, or WordPieces that are learned from them."""

import functools
import itertools
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqkeras.data.batches import Sequences
from seqkeras.serving.text import Tokenizer
from seqkeras.serving.text.word_piece import SPECIAL_TOKENS, word_piece
from seqkeras.tokenizers import learn_word_piece
from seqkeras.tokenizers.encode_all import LONGEST_PART
from seqkeras.training.console import console
from seqkeras.training.parts.pretrained import Pretrained, known_tokenizer
from seqkeras.training.parts.vocabularies import Texts, learned_from, learned_on
from seqkeras.training.task import Reading

FEW_ACCENTS = 1 / 200  # of letters: a text that may lose them
AT_ONCE = 10_000  # texts whose ids are lists of Python, before they are one array
MOST_WORDS = 2**16  # of which is remembered whether they have a token


class EncodedTexts(Reading):
    """Base of what reads texts by one tokenizer.

    Attributes:
        pretrained: a `Pretrained`, where an encoder is fine-tuned; else None.
    """

    pretrained: Pretrained | None = None

    def read_pretrained(self) -> None:
        """Read the encoder of --pretrained, if it is given."""
        if self.options.pretrained is not None:
            self.pretrained = Pretrained.read(self.options.pretrained)

    def tokenizer_of(
        self, examples: Sequence[Any], texts_of: Callable[[Any], Iterable[str]]
    ) -> dict[str, Tokenizer]:
        """Return a dictionary: role -> tokenizer, that of the encoder or one that is learned on the
        texts of examples.

        Args:
            examples: training examples.
            texts_of: a function: example -> its texts.
        """
        if self.pretrained:
            return {"text": self.pretrained.tokenizer}
        options, texts = self.options, Texts(learned_on(examples), texts_of)
        lowercase = options.lowercase
        if lowercase is None:
            share = share_of_accents(texts)
            lowercase = options.features is not None or share <= FEW_ACCENTS
            if not lowercase:
                console.print(
                    f"  {share:.1%} of the letters have an accent, so accents and case stay; "
                    "--lowercase true drops them"
                )
        with learned_from(options.file):
            tokenizer = learn_word_piece(texts, options.vocab_size, lowercase)
        return {"text": tokenizer}

    def has_token(self, text: str) -> bool:
        """Return whether the tokenizer finds a token in a text, known before one is learned."""
        return any(map(self._is_read, text.split()))

    @functools.cached_property
    def _is_read(self):
        """A function: word -> whether it has a token. WordPieces that are learned give a token to
        each word that is left of a text, if only [UNK]."""
        tokenizer = known_tokenizer(self)
        if tokenizer is None:
            lowercase = self.options.lowercase is not False
            tokenizer = word_piece(SPECIAL_TOKENS, lowercase, in_texts=())

        def is_read(word):
            return bool(tokenizer.encode(word))

        remembered = functools.lru_cache(MOST_WORDS)(is_read)
        return lambda word: (remembered if len(word) <= LONGEST_PART else is_read)(word)


def encoded_in_parts(
    encode: Callable[[Sequence[Any]], Sequence[Sequence[int]]], texts: Iterable[Any]
) -> Sequences:
    """Return the token ids of texts in one array; some texts at a time have lists of Python.

    Args:
        encode: texts -> token ids of each.
        texts: an iterable.
    """
    return Sequences.joined(Sequences(encode(some)) for some in in_parts(texts))


def in_parts(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield rows as lists of `AT_ONCE`; the last one is shorter, and may be empty."""
    rows = iter(rows)
    while len(some := [*itertools.islice(rows, AT_ONCE)]) == AT_ONCE:
        yield some
    yield some


def share_of_accents(texts: Iterable[str]) -> float:
    """Return how many marks texts have that their letters lose without accents, for each letter."""
    letters, marks, counts = 0, 0, np.zeros(sys.maxunicode + 1, "int64")
    for some in in_parts(texts):
        characters = "".join(some).encode("utf-32-le")
        part_counts = np.bincount(np.frombuffer(characters, "<u4"))
        counts[: len(part_counts)] += part_counts
    for code in np.flatnonzero(counts):
        character, count = chr(code), int(counts[code])
        parts = map(unicodedata.category, unicodedata.normalize("NFD", character))
        kinds = Counter(kind[0] if kind != "Mn" else kind for kind in parts)
        letters, marks = letters + count * kinds["L"], marks + count * kinds["Mn"]
    return marks / max(letters, 1)

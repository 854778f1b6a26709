"""The words of Keras's layer `TextVectorization`, split like TensorFlow's operators do.

Does not support n-grams, single characters and the user's own functions.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

from .encoding import require_text
from .vocabularies import Table
from .words import WordTable

LOWER, STRIP = "lower", "strip_punctuation"
BOTH = f"{LOWER}_and_{STRIP}"
STANDARDIZE = (BOTH, LOWER, STRIP, None)
SPACES = "\t\n\v\f\r "
PUNCTUATION = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
_CHUNK = re.compile(f"[^{SPACES}]+")
_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_STRIPPED = dict.fromkeys(map(ord, PUNCTUATION))


class VectorizedWords(WordTable):
    """The table of words of a Keras `TextVectorization`.

        id("<pad>"), id("<unk>") = 0, 1    Keras writes "" and "[UNK]"
        id("<bos>"), id("<eos>") = 2, 3    in a table whose words are generated

    Words are separated by ASCII white space. As in TensorFlow, lower case applies to ASCII letters
    only, and ASCII punctuation is stripped, also within words ("don't" is dont); a word of
    punctuation only is dropped. Any word that is not in the table is <unk>, and so is a word that
    is written like a special token.

    Args:
        words: the special tokens, then distinct words.
        standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation" or None.
        special_tokens: see `WordTable`.

    Raises:
        ValueError: if `standardize` is something else; see also `WordTable`.

    Reference: https://keras.io/api/layers/preprocessing_layers/text/text_vectorization/

    Example:
        >>> from seqkeras.serving.text import VectorizedWords
        >>> table = VectorizedWords(["<pad>", "<unk>", "dont", "stop"])
        >>> table.encode("Don't stop!")
        [2, 3]
    """

    kind = "vectorized_words"

    def __init__(
        self,
        words: Iterable[str],
        standardize: str | None = BOTH,
        special_tokens: Sequence[str] = WordTable.special_tokens,
    ) -> None:
        if standardize not in STANDARDIZE:
            raise ValueError(
                f"VectorizedWords: standardize must be one of {STANDARDIZE}; "
                f"received {standardize!r}."
            )
        super().__init__(words, standardize in (BOTH, LOWER), special_tokens)
        self.standardize = standardize
        self.strips = standardize in (BOTH, STRIP)

    def lookup(self, entry: str) -> int:
        """Return the id of a word, <unk> if it is not in the table."""
        word = entry.translate(_LOWER) if self.lowercase else entry
        word = word.translate(_STRIPPED) if self.strips else word
        return Table.lookup(self, word)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return (start, end) of each word of a text, without the punctuation around it.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        require_text("VectorizedWords", text)
        words = []
        for chunk in _CHUNK.finditer(text):
            word = chunk[0].strip(PUNCTUATION) if self.strips else chunk[0]
            if word:
                start = chunk.start() + chunk[0].index(word)
                words.append((start, start + len(word)))
        return words

    def content(self) -> dict[str, Any]:
        """Return what `to_file` writes."""
        settings = {"standardize": self.standardize, "special_tokens": self.special_tokens}
        return {"type": self.kind, **settings, self.kind: self.entries}

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """Return the table from a file's content."""
        special = content.get("special_tokens", cls.special_tokens)
        return cls(content[cls.kind], content.get("standardize", BOTH), special)

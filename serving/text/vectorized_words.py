"""The words of Keras's layer `TextVectorization`, as TensorFlow's operators make them of a text.

It leaves out n-grams, single characters and functions of the user's own.
"""

import re
from collections.abc import Iterable
from typing import Any, Self

from .encoding import require_text
from .vocabularies import UNK, Table
from .words import WordTable

LOWER, STRIP = "lower", "strip_punctuation"
BOTH = f"{LOWER}_and_{STRIP}"
STANDARDIZE = (BOTH, LOWER, STRIP, None)
SPACES = "\t\n\v\f\r "
PUNCTUATION = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
_CHUNK = re.compile(f"[^{SPACES}]+")
_LOWER = {ord(each): each.lower() for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_STRIPPED = dict.fromkeys(map(ord, PUNCTUATION))


class VectorizedWords(WordTable):
    """The words of a model that Keras's `TextVectorization` reads texts for.

        id("<pad>"), id("<unk>") = 0, 1, which are "" and "[UNK]" there

    Words stand between white space of ASCII. Lower case is that of ASCII too, as in TensorFlow, and
    what is stripped are ASCII's signs, within words also ("don't" is dont); a word of such alone is
    none. Any word that is not in the table is <unk>.

    Args:
        words: the special tokens, then distinct words.
        standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation" or None.

    Raises:
        ValueError: if `standardize` is something else, or as `WordTable` does.

    Reference: https://keras.io/api/layers/preprocessing_layers/text/text_vectorization/
    """

    kind = "vectorized_words"

    def __init__(self, words: Iterable[str], standardize: str | None = BOTH) -> None:
        if standardize not in STANDARDIZE:
            raise ValueError(
                f"VectorizedWords: standardize must be one of {STANDARDIZE}; "
                f"received {standardize!r}."
            )
        super().__init__(words, lowercase=standardize in (BOTH, LOWER))
        self.standardize = standardize
        self.strips = standardize in (BOTH, STRIP)

    def lookup(self, entry: str) -> int:
        """Return the id of a word, <unk> where it is not in the table."""
        word = entry.translate(_LOWER) if self.lowercase else entry
        word = word.translate(_STRIPPED) if self.strips else word
        return max(Table.lookup(self, word), UNK)  # a special token's name is no word

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where each word of a text lies, as (start, end): without the signs around it.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        require_text("VectorizedWords", text)
        found = []
        for chunk in _CHUNK.finditer(text):
            word = chunk[0].strip(PUNCTUATION) if self.strips else chunk[0]
            if word:
                start = chunk.start() + chunk[0].index(word)
                found.append((start, start + len(word)))
        return found

    def content(self) -> dict[str, Any]:
        """Return what `to_file` writes."""
        return {"type": self.kind, "standardize": self.standardize, self.kind: self.entries}

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """Return the table of what a file holds beside its type."""
        return cls(content[cls.kind], content.get("standardize", BOTH))

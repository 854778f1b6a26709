"""Texts as words, which a model reads by their characters."""

from dataclasses import dataclass

import numpy as np

from ..text import CharacterTable, word_places
from ..text.packing import pad_nested
from .inputs import open_tokenizer, require_length, require_words, too_long
from .model import Packing


def words_within(text, name, limit, truncate):
    """Return (start, end) of the words of a text, at most `limit`.

    Raises:
        ValueError: beginning with `name`, if there is no word, or there are too many without
            `truncate`.
    """
    if not truncate:
        require_length(text, limit, name)
    places = word_places(text)
    if not places:
        raise ValueError(f"{name} has no word; write something to answer.")
    if len(places) > limit and not truncate:
        raise too_long(name, len(places), limit, unit="words")
    return places[:limit]


def spelled(characters, text, places, most):
    """Return the ids of the first `most` characters of each word."""
    words = (text[start:end] for start, end in places)
    return [characters.encode(word[:most]) for word in words]


@dataclass(frozen=True)
class SpelledText:
    """The input of a model of characters for a text.

    Attributes:
        text: the given text.
        places: (start, end) of each word.
        character_ids: for each word, the ids of its characters.
    """

    text: str
    places: list
    character_ids: list

    def __len__(self):
        return len(self.places)


def _arrays(rows):
    return {
        "character_ids": pad_nested([row.character_ids for row in rows]),
        "lengths": np.array([len(row) for row in rows], dtype=np.int64),
    }


class SpelledWords:
    """Encodes texts as the characters of their words.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        word_length: the most characters of a word that are read.

    Raises:
        BundleError: if the table of characters is missing.
    """

    packing = Packing(_arrays, frozenset({"character_ids"}), frozenset({"lengths"}))

    def __init__(self, folder, manifest, word_length):
        self._characters = open_tokenizer(folder, manifest, "characters", CharacterTable)
        self._limit = manifest.limits.source_length
        self._word_length = word_length

    def read(self, text, name, truncate=False):
        """Return the `SpelledText` of a text.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        require_words(text, name)
        places = words_within(text, name, self._limit, truncate)
        return SpelledText(text, places, spelled(self._characters, text, places, self._word_length))

"""A character table: Unicode code points to ids and back.

Encoding composes the text (NFC: "e" and an accent become "é") and looks up each code point. It does
not change case, and adds no special tokens. A SavedModel does the same by operators of TensorFlow
and tensorflow-text. Does not handle characters of several code points that have no composed form.
"""

import collections
import functools
import itertools
import json
import os
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..parsing import parse_json

SPECIAL_TOKENS = ("<pad>", "<unk>", "<bos>", "<eos>")
"""The first tokens of a table of characters or words; their ids are PAD, UNK, BOS and EOS."""
PAD = 0
"""The id of padding."""
UNK = 1
"""The id of what a table does not have."""
BOS = 2
"""The id of the begin of a text."""
EOS = 3
"""The id of its end."""


class Table:
    """Base class of tables: a list of entries, special tokens first; an id is an index.

    A subclass sets its file's `kind`, the name of an `entry`, the `special_tokens`, and `is_entry`,
    which checks the other entries; `must_be` describes them in errors.
    """

    kind: str
    entry: str
    must_be: str
    special_tokens: tuple

    def __init__(self, entries: Iterable[str]):
        self.entries = tuple(entries)
        self._require_entries()
        count = len(self.special_tokens)
        self._ids = {entry: index for index, entry in enumerate(self.entries[count:], start=count)}

    def __repr__(self) -> str:
        return f"<{self._name}: {len(self):,} {self.entry}s>"

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other):
        return type(other) is type(self) and self.content() == other.content()

    def __hash__(self):
        return hash(self.entries)

    def id_of(self, token: str) -> int:
        """Return the id of an entry.

        Raises:
            ValueError: if there is no such entry.
        """
        if token in self.special_tokens:
            return self.special_tokens.index(token)
        if token not in self._ids:
            raise ValueError(f"{self._name}: the table must hold {token!r}; it does not.")
        return self._ids[token]

    def token_of(self, index: int) -> str:
        """Return the entry of an id.

        Raises:
            ValueError: if the id is not in the table.
        """
        if not 0 <= index < len(self):
            raise ValueError(f"{self._name}: ids must be under {len(self)}; received {index}.")
        return self.entries[index]

    def lookup(self, entry: str) -> int:
        """Return the id of an entry of texts, <unk> if it is not in the table."""
        return self._ids.get(entry, UNK)

    def content(self) -> dict[str, Any]:
        """Return what `to_file` writes."""
        return {"type": self.kind, self.kind: self.entries}

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON: {"type": ..., and under that name the list of entries}."""
        text = json.dumps(self.content(), ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `to_file` wrote.

        Raises:
            ValueError: if the file holds no table of this class.
        """
        name, kind = cls.__name__, cls.kind
        try:
            content = parse_json(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{name}: {path} is not JSON: {error}.") from error
        if not isinstance(content, dict) or content.pop("type", None) != kind:
            raise ValueError(f'{name}: {path} must hold {{"type": "{kind}", …}}.')
        if not isinstance(content.get(kind), list):
            raise ValueError(f'{name}: {path} must hold a list of "{kind}".')
        return cls.from_content(content)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """Return the table from a file's content."""
        return cls(content[cls.kind])

    @staticmethod
    def is_entry(entry: str) -> bool:
        """Return whether a string may be an entry of the table."""
        raise NotImplementedError

    @property
    def _name(self):
        return type(self).__name__

    def _require_entries(self):
        count = len(self.special_tokens)
        special, words = self.entries[:count], self.entries[count:]
        if special != self.special_tokens:
            raise ValueError(
                f"{self._name}: the first {self.kind} must be {', '.join(self.special_tokens)}; "
                f"received {special!r}."
            )
        for entry in words:
            if not isinstance(entry, str) or not self.is_entry(entry):
                raise ValueError(
                    f"{self._name}: a {self.entry} must be {self.must_be}; received {entry!r}."
                )
        if len(set(words)) < len(words):
            repeated, _ = collections.Counter(words).most_common(1)[0]
            raise ValueError(f"{self._name}: {repeated!r} comes twice.")


class CharacterTable(Table):
    """The characters of a model; a character's id is its index.

        id("<pad>"), id("<unk>"), id("<bos>"), id("<eos>") = 0, 1, 2, 3

    Any character that is not in the table is <unk>, also a lone surrogate or NUL.

    Args:
        entries: the special tokens, then distinct single code points.

    Attributes:
        characters: a tuple of them.

    Raises:
        ValueError: if the special tokens are not the first four, or an entry after them is not a
            code point, is a surrogate, or comes twice.

    Example:
        >>> from seqkeras.serving.text import CharacterTable
        >>> table = CharacterTable.learn(["café"])
        >>> table.characters
        ('<pad>', '<unk>', '<bos>', '<eos>', 'a', 'c', 'f', 'é')
        >>> table.encode("face?")  # 1 is <unk>
        [6, 4, 5, 1, 1]
        >>> table.decode([4, 5, 3, 6])  # up to <eos>
        'ac'
    """

    kind, entry, must_be = "characters", "character", "one code point"
    special_tokens = SPECIAL_TOKENS

    @property
    def characters(self) -> tuple[str, ...]:
        """The special tokens, then the characters."""
        return self.entries

    def encode(self, text: str) -> list[int]:
        """Return the id of each code point of `text` in NFC, as a list."""
        return [self.lookup(character) for character in unicodedata.normalize("NFC", text)]

    def encode_long(self, text: str) -> np.ndarray:
        """Return what `encode` returns as an array, int32, with less time for each code point."""
        composed = unicodedata.normalize("NFC", text).encode("utf-32-le", "surrogatepass")
        return self._id_of_code[np.frombuffer(composed, "<u4")]

    @functools.cached_property
    def _id_of_code(self):
        """(code points,) int32."""
        ids = np.full(sys.maxunicode + 1, UNK, "int32")
        for character in self._ids:
            ids[ord(character)] = self.lookup(character)
        return ids

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of `token_ids` up to the first <eos>; special tokens have no text.

        Raises:
            ValueError: if an id is not in the table.
        """
        text = []
        for index in token_ids:
            character = self.token_of(index)
            if index == EOS:
                break
            if index >= len(SPECIAL_TOKENS):
                text.append(character)
        return "".join(text)

    @classmethod
    def learn(cls, texts: Iterable[str]) -> Self:
        """Return the table of all code points in `texts`, in Unicode order.

        Lone surrogates are left out: UTF-8 can not encode them.
        """
        characters = set(itertools.chain.from_iterable(texts))
        return cls(SPECIAL_TOKENS + tuple(sorted(filter(cls.is_entry, characters))))

    @staticmethod
    def is_entry(entry: str) -> bool:
        return len(entry) == 1 and not "\ud800" <= entry <= "\udfff"

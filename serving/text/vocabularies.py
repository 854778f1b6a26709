"""A character table: Unicode code points to ids and back.

Encoding composes the text (NFC: "e" and an accent become "é") and looks up each code point. There
is no change of case, and no special token is added. A SavedModel does the same with
`unicode_decode` and a lookup table, but can not compose: it refuses text that is not composed. Does
not handle characters of several code points that have no composed form.
"""

import json
import unicodedata
from pathlib import Path

SPECIAL_TOKENS = ("<pad>", "<unk>", "<bos>", "<eos>")
PAD, UNK, BOS, EOS = range(4)


class CharacterTable:
    """The characters of a model; a character's id is its place.

        id("<pad>"), id("<unk>"), id("<bos>"), id("<eos>") = 0, 1, 2, 3

    Any character that is not in the table is <unk>: a lone surrogate or NUL too.

    Args:
        characters: the special tokens, then distinct single code points.

    Raises:
        ValueError: if the special tokens are not the first four, or an entry behind them is not a
            code point, is a surrogate, or comes twice.
    """

    def __init__(self, characters):
        self.characters = tuple(characters)
        self._require_characters()
        self._ids = {character: index for index, character in enumerate(self.characters)}

    def __len__(self):
        return len(self.characters)

    def __eq__(self, other):
        return isinstance(other, CharacterTable) and self.characters == other.characters

    def __hash__(self):
        return hash(self.characters)

    def id_of(self, token):
        """Return the id of a character or special token.

        Raises:
            ValueError: if there is no such.
        """
        if token not in self._ids:
            raise ValueError(f"CharacterTable: the table must hold {token!r}; it does not.")
        return self._ids[token]

    def token_of(self, index):
        """Return the character or special token of an id.

        Raises:
            ValueError: if the id is not in the table.
        """
        if not 0 <= index < len(self):
            raise ValueError(f"CharacterTable: ids must be under {len(self)}; received {index}.")
        return self.characters[index]

    def encode(self, text):
        """Return the id of each code point of `text` in NFC, as a list."""
        composed = unicodedata.normalize("NFC", text)
        return [self._ids.get(character, UNK) for character in composed]

    def decode(self, token_ids):
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
    def learn(cls, texts):
        """Return the table of all code points in `texts`, in their order in Unicode.

        Lone surrogates are left out: they can not be written as UTF-8.
        """
        found = set().union(*texts)
        return cls(SPECIAL_TOKENS + tuple(sorted(c for c in found if not _is_surrogate(c))))

    def to_file(self, path):
        """Write the table as JSON: {"type": "characters", "characters": [...]}."""
        content = {"type": "characters", "characters": self.characters}
        Path(path).write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def from_file(cls, path):
        """Read what `to_file` wrote.

        Raises:
            ValueError: if the file is not such a table.
        """
        try:
            content = json.loads(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"CharacterTable: {path} is not JSON: {error}.") from error
        if not isinstance(content, dict) or content.get("type") != "characters":
            raise ValueError(f'CharacterTable: {path} must hold {{"type": "characters", …}}.')
        if not isinstance(content.get("characters"), list):
            raise ValueError(f'CharacterTable: {path} must hold a list of "characters".')
        return cls(content["characters"])

    def _require_characters(self):
        special, own = (
            self.characters[: len(SPECIAL_TOKENS)],
            self.characters[len(SPECIAL_TOKENS) :],
        )
        if special != SPECIAL_TOKENS:
            raise ValueError(
                f"CharacterTable: the first characters must be {', '.join(SPECIAL_TOKENS)}; "
                f"received {special!r}."
            )
        for character in own:
            if not isinstance(character, str) or len(character) != 1 or _is_surrogate(character):
                raise ValueError(
                    f"CharacterTable: a character must be one code point; received {character!r}."
                )
        if len(set(own)) < len(own):
            repeated = next(c for place, c in enumerate(own) if c in own[:place])
            raise ValueError(f"CharacterTable: {repeated!r} comes twice.")


def _is_surrogate(character):
    return "\ud800" <= character <= "\udfff"

"""What each token of a tokenizer adds to a text, as bytes.

    text(y_1 … y_n) = first(y_1) + later(y_2) + … + later(y_n)

A token that stands first may lose its space. What a token adds is what the tokenizer itself decodes
of it behind another one; a token of bytes may add a part of a character.

No text is given to tokens that add nothing: special ones, and those of a vocabulary that its
tokenizer never writes; nor, of WordPiece, to those with an apostrophe, whose spaces depend on the
tokens behind them.
"""

from typing import Any

from .subwords import Subwords
from .vocabularies import CharacterTable
from .words import WordTable


def token_texts(tokenizer: Any) -> tuple[list[bytes | None], list[bytes | None]]:
    """Return the bytes that each token adds as the first of a text, and those as a later one.

    Args:
        tokenizer: of `serving.text`.

    Returns:
        Two lists of bytes or None, a place for each token.
    """
    if isinstance(tokenizer, CharacterTable):
        own = _of_table(tokenizer)
        return own, own
    if isinstance(tokenizer, WordTable):
        own = _of_table(tokenizer)
        return own, [each and b" " + each for each in own]
    if isinstance(tokenizer, Subwords) and tokenizer.is_byte_level:
        own = [_of_byte_level(tokenizer, place) for place in range(len(tokenizer))]
        return own, own
    anchor = next(place for place in range(len(tokenizer)) if _decode(tokenizer, [place]).isalnum())
    pairs = [_decoded(tokenizer, anchor, place) for place in range(len(tokenizer))]
    return [first for first, _ in pairs], [later for _, later in pairs]


def _of_table(table):
    special = len(table.special_tokens)
    return [*special * [None], *(each.encode() for each in table.entries[special:])]


def _of_byte_level(tokenizer, place):
    token = _token_of(tokenizer, place)
    if token is None or token in tokenizer.added_tokens or set(token) - set(_BYTES):
        return None
    return bytes(map(_BYTES.__getitem__, token))


def _decoded(tokenizer, anchor, place):
    """Return what a token adds as the first one, and behind the anchor."""
    token = _token_of(tokenizer, place)
    if token is None or token == "<unk>" or _depends_on_others(tokenizer, token):
        return None, None
    if place in tokenizer.byte_ids:
        byte = bytes([int(token[3:5], 16)])
        return (None if byte == b" " else byte), byte
    first, before = _decode(tokenizer, [place]), _decode(tokenizer, [anchor])
    both = _decode(tokenizer, [anchor, place])
    later = both[len(before) :] if both.startswith(before) else ""
    return first.encode() or None, later.encode() or None


def _depends_on_others(tokenizer, token):
    is_word_piece = isinstance(tokenizer, Subwords) and tokenizer.is_word_piece
    return is_word_piece and "'" in token and not token.startswith("##")


def _token_of(tokenizer, place):
    """Return the token of an id; None where the vocabulary has a gap."""
    try:
        return tokenizer.token_of(place)
    except ValueError:
        return None


def _decode(tokenizer, token_ids):
    try:
        return tokenizer.decode(token_ids)
    except ValueError:  # a gap
        return ""


def _seen_as():
    """Return character -> byte: how GPT-2's byte-level tokens write bytes that can not be seen.

    Reference: https://github.com/openai/gpt-2 (encoder.bytes_to_unicode)
    """
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)]
    others = [byte for byte in range(256) if byte not in seen]
    return {chr(each): each for each in seen} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }


_BYTES = _seen_as()

"""The bytes that each token of a tokenizer adds to a text.

    text(y_1 … y_n) = first(y_1) + later(y_2) + … + later(y_n)

The first token may lose its space. The text of a later token is what the tokenizer decodes for it
after another token; a token of bytes may add a part of a character.

Tokens that add nothing have no text: special tokens, and tokens that the tokenizer never writes;
nor do WordPiece tokens with an apostrophe, whose spaces depend on the tokens after them.
"""

from typing import Any

from .subwords import Subwords
from .vocabularies import CharacterTable
from .words import WordTable


def token_texts(tokenizer: Any) -> tuple[list[bytes | None], list[bytes | None]]:
    """Return the bytes that each token adds as the first token of a text, and as a later one.

    Args:
        tokenizer: a tokenizer of `seqkeras.serving.text`.

    Returns:
        Two lists of bytes or None, an entry for each token.

    Example:
        >>> from seqkeras.serving.text import WordTable, token_texts
        >>> first, later = token_texts(WordTable(["<pad>", "<unk>", "good", "day"]))
        >>> first
        [None, None, b'good', b'day']
        >>> later
        [None, None, b' good', b' day']
    """
    if isinstance(tokenizer, CharacterTable):
        texts = _of_table(tokenizer)
        return texts, texts
    if isinstance(tokenizer, WordTable):
        texts = _of_table(tokenizer)
        return texts, [text and b" " + text for text in texts]
    if isinstance(tokenizer, Subwords) and tokenizer.is_byte_level:
        texts = [_of_byte_level(tokenizer, index) for index in range(len(tokenizer))]
        return texts, texts
    anchor = next(index for index in range(len(tokenizer)) if _decode(tokenizer, [index]).isalnum())
    pairs = [_decoded(tokenizer, anchor, index) for index in range(len(tokenizer))]
    return [first for first, _ in pairs], [later for _, later in pairs]


def _of_table(table):
    special = len(table.special_tokens)
    return [*special * [None], *(entry.encode() for entry in table.entries[special:])]


def _of_byte_level(tokenizer, token_id):
    token = _token_of(tokenizer, token_id)
    if token is None or token in tokenizer.special_tokens or set(token) - set(_BYTES):
        return None
    return bytes(map(_BYTES.__getitem__, token))


def _decoded(tokenizer, anchor, token_id):
    """Return the text of a token as the first one, and after the anchor."""
    token = _token_of(tokenizer, token_id)
    if token is None or token == "<unk>" or _depends_on_others(tokenizer, token):
        return None, None
    if token_id in tokenizer.byte_ids:
        byte = bytes([int(token[3:5], 16)])
        return (None if byte == b" " else byte), byte
    first, before = _decode(tokenizer, [token_id]), _decode(tokenizer, [anchor])
    both = _decode(tokenizer, [anchor, token_id])
    later = both[len(before) :] if both.startswith(before) else ""
    return first.encode() or None, later.encode() or None


def _depends_on_others(tokenizer, token):
    is_word_piece = isinstance(tokenizer, Subwords) and tokenizer.is_word_piece
    return is_word_piece and "'" in token and not token.startswith("##")


def _token_of(tokenizer, token_id):
    """Return the token of an id; None where the vocabulary has a gap."""
    try:
        return tokenizer.token_of(token_id)
    except ValueError:
        return None


def _decode(tokenizer, token_ids):
    try:
        return tokenizer.decode(token_ids)
    except ValueError:  # a gap
        return ""


def _byte_of_character():
    """Return character -> byte, for GPT-2's characters of invisible bytes.

    Reference: https://github.com/openai/gpt-2 (encoder.bytes_to_unicode)
    """
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)]
    others = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {
        chr(256 + index): byte for index, byte in enumerate(others)
    }


_BYTES = _byte_of_character()

"""SentencePiece tokenizers, by the library `sentencepiece`.

Does not support sampled segmentations, nor the normalization of punctuation by Moses' scripts,
which precedes some of Marian's models.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Self

from ..parsing import parse_json
from .encoding import Encoding, fit, require_text
from .library import errors_of_library

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")
CAN_NOT = "SentencePieces: the tokenizer can not read this text"
MOST_ID = 2**31 - 1  # of the library's type
SPACE = "\u2581"  # a piece that begins with it begins a word
LANGUAGE_CODE = re.compile(">>[^<>]+<<")


class SentencePieces:
    """A SentencePiece model, with its ids or a vocabulary's.

    Args:
        model: the bytes of a SentencePiece model.
        vocabulary: token -> id, as in Marian's models; None for the model's own ids. Other tokens
            are <unk>; a language code at the start of a text, such as >>fra<<, is one token.
        prefix, suffix: tokens that `analyze` adds before and after a text.

    Raises:
        ValueError: if the bytes are no SentencePiece model, the vocabulary lacks <unk>, or a token
            of prefix or suffix is unknown.
        ImportError: if `sentencepiece` is not installed, or older than 0.2.2.

    Reference: Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226

    Example:
        >>> from seqkeras.tokenizers import learn_sentence_pieces
        >>> tokenizer = learn_sentence_pieces(["low lower lowest"] * 9, 14, suffix=["</s>"])
        >>> encoding = tokenizer.analyze("low lower")
        >>> encoding.tokens[-1], encoding.offsets[0]
        ('</s>', (0, 3))
        >>> tokenizer.decode(encoding.token_ids)
        'low lower'
    """

    def __init__(
        self,
        model: bytes,
        vocabulary: Mapping[str, int] | None = None,
        prefix: Iterable[str] = (),
        suffix: Iterable[str] = (),
    ):
        self._library = _parse(model)
        self.model = bytes(model)
        self.vocabulary = None if vocabulary is None else _vocabulary(vocabulary)
        self.prefix, self.suffix = tuple(prefix), tuple(suffix)
        if self.vocabulary is not None:
            self._tokens = {index: token for token, index in self.vocabulary.items()}
        for token in (*(() if vocabulary is None else ("<unk>",)), *self.prefix, *self.suffix):
            self.id_of(token)

    def __repr__(self) -> str:
        ids = "its own ids" if self.vocabulary is None else "the ids of a vocabulary"
        return f"<SentencePieces: {len(self):,} tokens, {ids}>"

    def __len__(self) -> int:
        if self.vocabulary is None:
            return self._library.get_piece_size()
        return max(self.vocabulary.values()) + 1

    def __eq__(self, other):
        return isinstance(other, SentencePieces) and self._content() == other._content()

    def __hash__(self):
        return hash(self.model)

    def id_of(self, token: str) -> int:
        """Return the id of a token.

        Raises:
            ValueError: if there is no such token.
        """
        if self.vocabulary is None:
            with errors_of_library(f"SentencePieces: the vocabulary must hold {token!r}"):
                token_id = self._library.piece_to_id(token)
                token_id = None if self._library.id_to_piece(token_id) != token else token_id
        else:
            token_id = self.vocabulary.get(token)
        if token_id is None:
            raise ValueError(f"SentencePieces: the vocabulary must hold {token!r}; it does not.")
        return token_id

    def token_of(self, index: int) -> str:
        """Return the token of an id.

        Raises:
            ValueError: if the id is not in the vocabulary.
        """
        if self.vocabulary is not None and index in self._tokens:
            return self._tokens[index]
        if self.vocabulary is not None or not 0 <= index < len(self):
            raise ValueError(f"SentencePieces: ids must be under {len(self)}; received {index}.")
        return self._library.id_to_piece(index)

    @property
    def byte_ids(self) -> frozenset[int]:
        """The ids of tokens that are one byte of a character."""
        ids = range(self._library.get_piece_size())
        pieces = {
            token_id: self._library.id_to_piece(token_id)
            for token_id in ids
            if self._library.is_byte(token_id)
        }
        if self.vocabulary is None:
            return frozenset(pieces)
        return frozenset(
            self.vocabulary[piece] for piece in pieces.values() if piece in self.vocabulary
        )

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without prefix and suffix.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        require_text("SentencePieces", text)
        if self.vocabulary is None:
            with errors_of_library(CAN_NOT):
                return self._library.encode(text)
        return [self._known_id(token) for token, _ in self._split(text)]

    def encode_all(self, texts: Sequence[str], special_tokens: bool = False) -> list[list[int]]:
        """Return the ids of many texts, without their offsets: some eight times as fast.

        Args:
            texts: the texts.
            special_tokens: with prefix and suffix.

        Raises:
            ValueError: if a text is not a string, or holds a lone surrogate.
        """
        around = (self.prefix, self.suffix) if special_tokens else ((), ())
        prefix, suffix = ([*map(self._known_id, tokens)] for tokens in around)
        if self.vocabulary is not None:
            return [[*prefix, *self.encode(text), *suffix] for text in texts]
        for text in texts:
            require_text("SentencePieces", text)
        with errors_of_library(CAN_NOT):
            encoded = self._library.encode(list(texts))
        return [[*prefix, *token_ids, *suffix] for token_ids in encoded]

    def analyze(self, text: str, max_length: int | None = None, truncate: bool = False) -> Encoding:
        """Return the `Encoding` of a text, with prefix and suffix.

        Args:
            text: a string.
            max_length: the most tokens, with prefix and suffix; None for any number.
            truncate: cut a text that is too long.

        Raises:
            ValueError: if `text` is not a string, holds a lone surrogate, or has too many tokens
                and `truncate` is False.
        """
        require_text("SentencePieces", text)
        pieces = self._split(text)
        around = len(self.prefix) + len(self.suffix)
        [num_pieces] = fit("SentencePieces", [len(pieces)], around, max_length, truncate)
        pieces = [
            *((token, None) for token in self.prefix),
            *pieces[:num_pieces],
            *((token, None) for token in self.suffix),
        ]
        return Encoding(
            token_ids=[self._known_id(token) for token, _ in pieces],
            tokens=[token for token, _ in pieces],
            offsets=[offset for _, offset in pieces],
            segment_ids=[0] * len(pieces),
            word_ids=_words_of(pieces),
            texts=(text,),
        )

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of `token_ids`; special tokens have none.

        An unknown token is " ⁇ " with the model's own ids; with a vocabulary it is left out.

        Raises:
            ValueError: if an id is not in the vocabulary.
        """
        token_ids = [int(token_id) for token_id in token_ids]
        tokens = [self.token_of(token_id) for token_id in token_ids]
        with errors_of_library("SentencePieces: the tokenizer can not join tokens"):
            if self.vocabulary is None:
                return self._library.decode(token_ids)
            known = [token for token in tokens if token not in SPECIAL_TOKENS]
            return self._library.decode_pieces(known)

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write JSON: {"type": "sentencepiece", "model": its bytes in base 64, ...}."""
        Path(path).write_text(self._content() + "\n", encoding="utf-8")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `to_file` wrote, or the file of a SentencePiece model.

        Raises:
            ValueError: if the file is neither.
        """
        content = Path(path).read_bytes()
        try:
            if not content.startswith(b"{"):
                return cls(content)
            fields = parse_json(content)
            if fields.pop("type", None) != "sentencepiece":
                raise ValueError('it must hold {"type": "sentencepiece", …}.')
            return cls(base64.b64decode(fields.pop("model"), validate=True), **fields)
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise ValueError(f"{path}: not a SentencePiece model: {error}") from error

    @classmethod
    def from_marian(cls, folder: str | os.PathLike[str], side: str = "source") -> Self:
        """Read a side of a Marian model's folder: `source.spm` or `target.spm`, and `vocab.json`;
        of targets `target_vocab.json`, where there is one.

        Raises:
            ValueError: if the side is unknown, or a file has another content.
        """
        if side not in ("source", "target"):
            raise ValueError(f"SentencePieces: side must be source or target; received {side!r}.")
        folder = Path(folder)
        separate = folder / "target_vocab.json"  # of a model with a vocabulary for each language
        path = separate if side == "target" and separate.is_file() else folder / "vocab.json"
        try:
            vocabulary = parse_json(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: must be JSON: {error}.") from error
        model = (folder / f"{side}.spm").read_bytes()
        return cls(model, vocabulary, suffix=["</s>"])

    def _split(self, text):
        """Return the tokens of a text, and their offsets."""
        code = LANGUAGE_CODE.match(text) if self.vocabulary is not None else None
        start = code.end() if code else 0
        rest = text[start:]
        places = _places_of_bytes(rest)
        tokens = [(text[:start], (0, start))] if start else []
        with errors_of_library(CAN_NOT):
            pieces = self._library.encode(rest, return_type="proto").pieces
        for piece in pieces:
            tokens.append((piece.piece, (start + places[piece.begin], start + places[piece.end])))
        return tokens

    def _known_id(self, token):
        if self.vocabulary is None:
            return self._library.piece_to_id(token)
        return self.vocabulary.get(token, self.vocabulary["<unk>"])

    def _content(self):
        fields = {
            "type": "sentencepiece",
            "model": base64.b64encode(self.model).decode(),
            "vocabulary": self.vocabulary,
            "prefix": self.prefix,
            "suffix": self.suffix,
        }
        return json.dumps(fields, ensure_ascii=False)


def _vocabulary(pairs):
    """Return a vocabulary as a dictionary, token -> id."""
    vocabulary = dict(pairs)
    for token, index in vocabulary.items():
        if not isinstance(token, str) or type(index) is not int or not 0 <= index <= MOST_ID:
            raise ValueError(
                f"SentencePieces: the vocabulary must hold the id of each token, from 0 to "
                f"{MOST_ID}; received {token!r}: {index!r}."
            )
    return vocabulary


def _words_of(pieces):
    """Return the word of each token: one begins with each "▁"; None for special tokens."""
    word_ids, word = [], -1
    for token, index in pieces:
        if index is not None and (token.startswith(SPACE) or word < 0):
            word += 1
        word_ids.append(None if index is None else word)
    return word_ids


def _places_of_bytes(text):
    """Return a dictionary: byte offset of a character, or of the end of the text -> its index in
    code points."""
    places, begin = {}, 0
    for index, character in enumerate(text):
        places[begin] = index
        begin += len(character.encode())
    return {**places, begin: len(text)}


def _parse(model):
    library = require_library()
    with errors_of_library("SentencePieces: model must be the bytes of a SentencePiece model"):
        return library.SentencePieceProcessor(model_proto=bytes(model))


def require_library():
    """Return the module `sentencepiece`, imported on first use.

    Raises:
        ImportError: if it is not installed, or older than 0.2.2.
    """
    needs = "SentencePiece models need the library sentencepiece"
    try:
        import sentencepiece
    except ImportError as error:
        raise ImportError(f"{needs}: pip install sentencepiece.") from error
    if "return_type" not in signature(sentencepiece.SentencePieceProcessor.encode).parameters:
        raise ImportError(
            f"{needs} from 0.2.2 on; this is {sentencepiece.__version__}: "
            "pip install --upgrade sentencepiece."
        )
    return sentencepiece

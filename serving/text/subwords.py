"""WordPiece and byte-level BPE, by the library `tokenizers`.

A `tokenizer.json` defines the behaviour. Does not support the library's batches, padding and state:
truncation is an option of each call.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from .encoding import Encoding, LibraryEncoding, fit, require_text
from .library import errors_of_library

CAN_NOT = "Subwords: the tokenizer can not read this text"
AT_ONCE = 10_000  # texts of which the library holds more than the ids: tokens and their places
MOST_ID = 2**32 - 1  # of the library's type
CONTRACTIONS = ("n't", "'m", "'s", "'ve", "'re")


class Subwords:
    """A tokenizer whose tokens are words and parts of words.

    `word_piece` and `byte_pairs` make one from a vocabulary, `from_file` from a `tokenizer.json`. A
    text is searched for the file's `added_tokens`, in every library that reads the file: "[MASK]"
    is one token of BERT. The special tokens that the file's post-processor alone names stand around
    texts; written in a text they are text.

    Args:
        content: the text of a `tokenizer.json`.

    Attributes:
        is_word_piece: whether tokens are joined to words by spaces.
        is_byte_level: whether tokens are written in GPT-2's characters for bytes.
        byte_ids: the ids of tokens that are one byte of a character.
        added_tokens: tokens that a text is searched for.
        special_tokens: tokens that have no text: added ones that are special, and those that the
            post-processor names.
        left_stripped: the special tokens that absorb the white space before them, like RoBERTa's
            mask.

    Raises:
        ValueError: if the content is not a `tokenizer.json`.
        ImportError: if `tokenizers` is not installed.

    Reference: https://github.com/huggingface/tokenizers

    Example:
        >>> from seqkeras.serving.text import word_piece
        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> tokenizer = word_piece([*special, "who", "?", "me"])
        >>> tokenizer
        <Subwords: WordPiece, 8 tokens>
        >>> encoding = tokenizer.analyze("Who?", "Me", max_length=6, truncate=True)
        >>> encoding.tokens, encoding.segment_ids
        (['[CLS]', 'who', '?', '[SEP]', 'me', '[SEP]'], [0, 0, 0, 0, 1, 1])
    """

    def __init__(self, content: str):
        library = require_library()
        with errors_of_library("Subwords: content must be the text of a tokenizer.json"):
            self._library = library.Tokenizer.from_str(content)
            encoding = self._library.encode("", add_special_tokens=False)
            self._library.post_process(encoding)  # detects some damaged files
        self._library.no_truncation()
        self._library.no_padding()
        parsed = json.loads(content)
        self._kind = parsed["model"].get("type")
        self.is_word_piece = self._kind == "WordPiece"
        self.is_byte_level = "ByteLevel" in _decoders(parsed)
        self.byte_ids = _byte_ids(parsed, self._library.get_vocab())
        added = parsed.get("added_tokens") or []
        self.added_tokens = frozenset(token["content"] for token in added)
        self.special_tokens = special_tokens(parsed)
        self._special_ids = frozenset(map(self._library.token_to_id, self.special_tokens))
        self.left_stripped = frozenset(token["content"] for token in added if token.get("lstrip"))

    def __repr__(self) -> str:
        return f"<Subwords: {self._kind}, {len(self):,} tokens>"

    def __len__(self) -> int:
        return self._library.get_vocab_size()

    def __eq__(self, other):
        return isinstance(other, Subwords) and self.to_json() == other.to_json()

    def __hash__(self):
        return hash(self.to_json())

    def id_of(self, token: str) -> int:
        """Return the id of a token.

        Raises:
            ValueError: if the vocabulary has no such token.
        """
        token_id = self._library.token_to_id(token)
        if token_id is None:
            raise ValueError(f"Subwords: the vocabulary must hold {token!r}; it does not.")
        return token_id

    def id_in_texts(self, token: str) -> int:
        """Return the id of a token that texts are searched for.

        Raises:
            ValueError: if the vocabulary has no such token, or one in a text is text.
        """
        token_id = self.id_of(token)
        if token not in self.added_tokens:
            raise ValueError(
                f"Subwords: the tokenizer must read {token!r} in texts, as one of its "
                "added_tokens; it does not. A learned one does so with masks=True."
            )
        return token_id

    def token_of(self, index: int) -> str:
        """Return the token of an id.

        Raises:
            ValueError: if the id is not in the vocabulary.
        """
        known = 0 <= index <= MOST_ID
        token = self._library.id_to_token(index) if known else None
        if token is None:
            raise ValueError(f"Subwords: ids must be under {len(self)}; received {index}.")
        return token

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without special tokens around it.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        return self._split(text).ids

    def encode_all(self, texts: Sequence[str], special_tokens: bool = False) -> list[list[int]]:
        """Return the ids of many texts, in threads of the library.

        Args:
            texts: the texts.
            special_tokens: with those around each text, as `analyze` sets them.

        Raises:
            ValueError: if a text is not a string, or holds a lone surrogate.
        """
        for text in texts:
            require_text("Subwords", text)
        ids: list[list[int]] = []
        with errors_of_library(CAN_NOT):
            for start in range(0, len(texts), AT_ONCE):
                some = list(texts[start : start + AT_ONCE])
                batch = self._library.encode_batch_fast(some, add_special_tokens=special_tokens)
                ids += (encoding.ids for encoding in batch)
        return ids

    def analyze(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        truncate: bool = False,
    ) -> Encoding:
        """Return the `Encoding` of a text or of a pair, with the special tokens of the template.

        BERT's is [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]; GPT-2 has none.

        Args:
            text, pair: the texts; None for no second text.
            max_length: the most tokens, with special ones; None for any number.
            truncate: cut the longer text, token by token, until both fit.

        Raises:
            ValueError: if a text is not a string, holds a lone surrogate, or there are too many
                tokens and `truncate` is False.
        """
        if pair is None and max_length is None:
            require_text("Subwords", text)
            with errors_of_library(CAN_NOT):
                return LibraryEncoding(self._library.encode(text), text)
        texts = [string for string in (text, pair) if string is not None]
        parts = [self._split(string) for string in texts]
        num_special = self._library.num_special_tokens_to_add(len(parts) == 2)
        lengths = [len(part.ids) for part in parts]
        for part, length in zip(parts, fit("Subwords", lengths, num_special, max_length, truncate)):
            part.truncate(length)
        return self._joined(parts, texts)

    def analyze_all(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the `Encoding` of each of many texts, as `analyze` does, in threads of the
        library.

        Raises:
            ValueError: if a text is not a string, or holds a lone surrogate.
        """
        for text in texts:
            require_text("Subwords", text)
        with errors_of_library(CAN_NOT):
            return [*map(LibraryEncoding, self._library.encode_batch([*texts]), texts)]

    @property
    def num_special(self) -> int:
        """The number of special tokens around a text."""
        return self._library.num_special_tokens_to_add(False)

    def windows(
        self,
        text: str | None,
        context: str,
        max_length: int,
        step: int,
        text_length: int | None = None,
    ) -> list[Encoding]:
        """Return the `Encoding`s of a text, each with a part of a long context as its pair.

        Args:
            text: the text; None for the parts of the context alone.
            context: the long text.
            max_length: the most tokens of each, with special ones.
            step: the distance in tokens between the starts of two parts; less if tokens between
                them would be left out.
            text_length: the number of tokens to which the text is cut; None: it is not cut.

        Raises:
            ValueError: if a text is not a string, holds a lone surrogate, or max_length leaves no
                room for the context.
        """
        texts = [string for string in (text, context) if string is not None]
        *first, second = map(self._split, texts)
        for part in first:
            part.truncate(len(part.ids) if text_length is None else text_length)
        length = sum(len(part.ids) for part in first)
        room = max_length - length - self._library.num_special_tokens_to_add(bool(first))
        if room < 1:
            raise ValueError(
                f"Subwords: max_length must leave room for the context beside {length} "
                f"tokens; received {max_length}."
            )
        second.truncate(room, stride=max(room - step, 0))
        return [self._joined([*first, part], texts) for part in (second, *second.overflowing)]

    def words(self, text: str) -> list[str]:
        """Return the normalised words that are split into tokens: for BERT, without accents."""
        require_text("Subwords", text)
        library = self._library
        with errors_of_library(CAN_NOT):
            text = library.normalizer.normalize_str(text) if library.normalizer else text
            if library.pre_tokenizer is None:
                return [text]
            return [word for word, _ in library.pre_tokenizer.pre_tokenize_str(text)]

    def decode(self, token_ids: Iterable[int], special_tokens: bool = False) -> str:
        """Return the text of `token_ids`.

        Byte-level BPE restores the encoded text. WordPiece joins words by spaces, and removes those
        that English does not have (`tidy`).

        Args:
            token_ids: a sequence of ids.
            special_tokens: keep special tokens.

        Raises:
            ValueError: if an id is not in the vocabulary.
        """
        token_ids = [int(token_id) for token_id in token_ids]
        for token_id in token_ids:
            self.token_of(token_id)
        if not special_tokens:
            token_ids = [token_id for token_id in token_ids if token_id not in self._special_ids]
        with errors_of_library("Subwords: the tokenizer can not join tokens"):
            text = self._library.decode(token_ids, skip_special_tokens=False)
        return tidy(text) if self.is_word_piece else text

    def to_json(self) -> str:
        """Return the text of a `tokenizer.json`."""
        return self._library.to_str()

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json`, which the library and Hugging Face read too."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a `tokenizer.json`.

        Raises:
            ValueError: if the file is not one.
        """
        try:
            return cls(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def _joined(self, parts, texts):
        with errors_of_library(CAN_NOT):
            joined = self._library.post_process(*parts)
        is_special = joined.special_tokens_mask
        # RoBERTa's post-processor has trimmed the parts' offsets, and would trim the joined ones
        # again.
        places = iter([offset for part in parts for offset in part.offsets])
        return Encoding(
            token_ids=joined.ids,
            tokens=joined.tokens,
            offsets=[None if s else next(places) for s in is_special],
            segment_ids=joined.type_ids,
            word_ids=[None if s else word for word, s in zip(joined.word_ids, is_special)],
            texts=tuple(texts),
        )

    def _split(self, text):
        require_text("Subwords", text)
        with errors_of_library(CAN_NOT):
            return self._library.encode(text, add_special_tokens=False)


def special_tokens(content: dict[str, Any]) -> frozenset[str]:
    """Return the tokens of a parsed `tokenizer.json` that have no text."""
    added = content.get("added_tokens") or []
    processor = content.get("post_processor") or {}
    named = [
        token
        for part in processor.get("processors", [processor])
        for special in (part.get("special_tokens") or {}).values()
        for token in special["tokens"]
    ]
    return frozenset([*named, *(token["content"] for token in added if token["special"])])


def _decoders(content):
    """Return the types of the decoders of a `tokenizer.json`."""
    decoder = content.get("decoder") or {}
    return [part.get("type") for part in decoder.get("decoders", [decoder])]


def _byte_ids(content, vocabulary):
    """Return the ids of tokens that are single bytes, which form characters together.

    If one byte of a run fits no character, no byte of the run is decoded.
    """
    if "ByteFallback" not in _decoders(content):
        return frozenset()
    is_byte = re.compile("<0x[0-9A-F]{2}>").fullmatch
    return frozenset(index for token, index in vocabulary.items() if is_byte(token))


def tidy(text: str) -> str:
    """Remove spaces that English does not have from joined words.

    Args:
        text: words with spaces between them.

    Returns:
        The text, without spaces before .?!, and before endings such as n't and 's.

    Reference: https://github.com/huggingface/transformers (clean_up_tokenization)

    Example:
        >>> from seqkeras.serving.text import tidy
        >>> tidy("we do n't , you know .")
        "we don't, you know."
    """
    for mark in ".?!,":
        text = text.replace(f" {mark}", mark)
    text = text.replace(" ' ", "'")
    for ending in CONTRACTIONS:
        text = text.replace(f" {ending}", ending)
    return text


def require_library():
    """Return the module `tokenizers`, imported on first use.

    Raises:
        ImportError: if it is not installed.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "WordPiece and byte-level BPE need the library tokenizers: pip install tokenizers."
        ) from error
    return tokenizers

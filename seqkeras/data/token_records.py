"""Documents as token ids in shards, made once and read by memory map.

    records.json          the form of the documents, the shards, the digests of files and tokenizer
    tokenizer.json
    validation.txt        the documents that are held out, as text: a sentence a line
    shard-00000/
        tokens.npy        (tokens,) uint16 or uint32: all sentences of the shard in their order
        sentences.npy     (sentences + 1,) int64: where each begins in `tokens`, and the end
        documents.npy     (documents + 1,) int64: where each begins in `sentences`, and the end

`begin_records` writes the first three, and `write_shard` one shard, in any process or on any
machine that sees the folder and the files. A shard appears whole, so a preparation that was killed
goes on with those that are missing.

A sentence without a token is left out, as is a document without a sentence.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from seqkeras import files
from seqkeras.data.documents import Corpus, Shard
from seqkeras.data.texts import DataError
from seqkeras.folders import written_aside
from seqkeras.serving.text import read_tokenizer
from seqkeras.tokenizers.encode_all import Encoder

if TYPE_CHECKING:
    from seqkeras.serving.text import Subwords

RECORDS = "records.json"
TOKENIZER = "tokenizer.json"
VALIDATION = "validation.txt"
PARTS = ("tokens", "sentences", "documents")
VERSION = 2
OPEN = 32  # shards that stay open, each with a file descriptor for each of its parts


def begin_records(folder: Path | str, corpus: Corpus, tokenizer: Subwords) -> list[int]:
    """Make a folder of records without shards; one of the same corpus and tokenizer goes on.

    Args:
        folder: a path.
        corpus: a `seqkeras.data.Corpus`.
        tokenizer: a `Subwords`.

    Returns:
        The numbers of the shards that are missing, a list.

    Raises:
        DataError: if the folder holds something else, or records with other options.
        InUseError: if another process makes the same folder.
        OSError: if the folder can not be written.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import Corpus, begin_records
        >>> from seqkeras.tokenizers import learn_word_piece
        >>> _ = pathlib.Path("texts.txt").write_text("low lower\\n\\nlowest\\n" * 9)
        >>> tokenizer = learn_word_piece(["low lower lowest"] * 9, vocab_size=25)
        >>> begin_records("begun", Corpus.of_files(["texts.txt"], shard_bytes=99), tokenizer)
        [0, 1]
    """
    folder = Path(folder)
    content = _content(corpus, tokenizer)
    if is_records(folder):
        earlier = _read_content(folder)
        differing = [name for name in content if earlier.get(name) != content[name]]
        if differing:
            raise DataError(
                f"{folder}: holds records with another {' and '.join(differing)}; choose another "
                "folder of records, or remove this one."
            )
        return missing_shards(folder)
    if folder.exists() and any(folder.iterdir()):
        raise DataError(
            f"{folder}: not empty, and no folder of records ({RECORDS} is missing); choose another."
        )
    documents = ["\n".join(sentences) for sentences in corpus.validation]
    with written_aside(folder.absolute(), lambda: None) as aside:
        tokenizer.to_file(aside / TOKENIZER)
        (aside / VALIDATION).write_text("\n\n".join(documents) + "\n", encoding="utf-8")
        files.write_json(aside / RECORDS, content)
    return missing_shards(folder)


def is_records(folder: Path | str) -> bool:
    """Return whether a path names a folder of records."""
    return (Path(folder) / RECORDS).is_file()


def form_of(folder: Path | str) -> str:
    """Return the form of the documents of records, one of `seqkeras.data.documents.FORMS`.

    Raises:
        DataError: if there are no records.
    """
    return _read_content(folder)["form"]


def missing_shards(folder: Path | str) -> list[int]:
    """Return the numbers of the shards that are still to be made.

    Raises:
        DataError: if there are no records.
    """
    return [number for number, shard in enumerate(_shards(folder)) if not shard.is_dir()]


def write_shard(folder: Path | str, number: int) -> None:
    """Make a shard, if it is not there.

    Args:
        folder: folder of `begin_records`, a path.
        number: number of the shard.

    Raises:
        DataError: if the file of the shard can not be read.
        InUseError: if another process makes it.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import Corpus, begin_records, write_shard
        >>> from seqkeras.tokenizers import learn_word_piece
        >>> _ = pathlib.Path("texts.txt").write_text("low lower\\n\\nlowest\\n" * 9)
        >>> tokenizer = learn_word_piece(["low lower lowest"] * 9, vocab_size=25)
        >>> for number in begin_records("shards", Corpus.of_files(["texts.txt"]), tokenizer):
        ...     write_shard("shards", number)
        >>> sorted(path.name for path in pathlib.Path("shards", "shard-00000").iterdir())
        ['documents.npy', 'sentences.npy', 'tokens.npy']
    """
    shard = _shard(folder, number)
    if shard.is_dir():
        return
    corpus = _corpus(_read_content(folder))
    tokenizer = _tokenizer(str(Path(folder) / TOKENIZER))
    encode = encoder_of_sentences(tokenizer)
    dtype = np.min_scalar_type(max(len(tokenizer) - 1, 256))  # uint16 or uint32
    tokens, sentences, documents = [], [0], [0]
    for document in corpus.read(corpus.shards[number]):
        for token_ids in encode(document):
            tokens.append(np.array(token_ids, dtype))
            sentences.append(sentences[-1] + len(token_ids))
        if len(sentences) - 1 > documents[-1]:
            documents.append(len(sentences) - 1)
    values = np.concatenate([np.zeros(0, dtype), *tokens]), np.array(sentences), np.array(documents)
    with written_aside(shard.absolute(), lambda: None) as aside:
        for name, value in zip(PARTS, values, strict=True):
            np.save(aside / f"{name}.npy", value)


def encoder_of_sentences(tokenizer: Subwords) -> Callable[[Iterable[str]], list[list[int]]]:
    """Return a function: sentences of a document -> token ids of those that have some. Byte pairs
    know a word by the space before it."""
    encode, before = Encoder(tokenizer), " " if tokenizer.is_byte_level else ""

    def encoded(sentences):
        rows = encode([f"{before}{sentence}" for sentence in sentences])
        return [token_ids for token_ids in rows if token_ids]

    return encoded


class TokenRecords:
    """The shards of a folder, by memory map.

    Args:
        folder: a path.

    Attributes:
        shards: sequence of `ShardTokens`, of which few are open at a time.
        tokenizer: the `Subwords` of their token ids.
        num_documents, num_tokens: numbers of documents and tokens of all shards.

    Raises:
        DataError: if the folder holds no records, a shard is missing, damaged or can not be read,
            or there is no token.
        ValueError, OSError: if the file of their tokenizer is damaged or missing.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import Corpus, TokenRecords, begin_records, write_shard
        >>> from seqkeras.tokenizers import learn_word_piece
        >>> _ = pathlib.Path("texts.txt").write_text("low lower\\n\\nlowest\\n" * 9)
        >>> tokenizer = learn_word_piece(["low lower lowest"] * 9, vocab_size=25)
        >>> for number in begin_records("records", Corpus.of_files(["texts.txt"]), tokenizer):
        ...     write_shard("records", number)
        >>> records = TokenRecords("records")
        >>> records.num_documents, records.num_tokens
        (10, 27)
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        shards = _shards(folder)
        missing = sum(not shard.is_dir() for shard in shards)
        if missing:
            raise DataError(
                f"{folder}: {missing:,} of {len(shards):,} shards are missing: their preparation "
                "was stopped; the command that began it goes on."
            )
        self.tokenizer = read_tokenizer(self.folder / TOKENIZER)
        self.shards = _Shards(shards)
        counts = [(shard.num_documents, len(shard.tokens)) for shard in self.shards]
        self.num_documents, self.num_tokens = map(sum, zip(*counts, strict=True))
        if not self.num_tokens:
            raise DataError(f"{folder}: no token is left: the text has none.")


class _Shards(Sequence):
    """`ShardTokens` of folders: each is opened when it is asked for; the last `OPEN` stay open."""

    def __init__(self, folders: Sequence[Path]):
        self.folders = folders
        self.opened = functools.lru_cache(maxsize=OPEN)(ShardTokens)

    def __len__(self) -> int:
        return len(self.folders)

    def __getitem__(self, number: Any) -> Any:
        return self.opened(self.folders[number])


class ShardTokens:
    """The arrays of a shard, or of documents that lie in memory.

    Args:
        folder: folder of the shard, a path.

    Attributes:
        tokens, sentences, documents: as in the files.
    """

    def __init__(self, folder: Path):
        try:
            self.tokens, self.sentences, self.documents = (
                np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in PARTS
            )
        except (ValueError, EOFError, FileNotFoundError) as error:
            raise DataError(
                f"{folder}: damaged ({error}); remove it, and prepare again."
            ) from error
        except OSError as error:
            raise DataError(f"{folder}: can not be read: {error.strerror}.") from error

    @classmethod
    def of_documents(cls, documents: Iterable[Sequence[Sequence[int]]]) -> Self:
        """Return the records of a list of documents, lists of sentences, lists of token ids."""
        records = cls.__new__(cls)
        rows = [sentence for document in documents for sentence in document]
        lengths = [len(row) for row in rows]
        records.tokens = np.array([token for row in rows for token in row], "uint32")
        records.sentences = np.cumsum([0, *lengths])
        records.documents = np.cumsum([0, *map(len, documents)])
        return records

    @property
    def num_documents(self) -> int:
        return len(self.documents) - 1


def _content(corpus, tokenizer):
    return {
        "version": VERSION,
        "form": corpus.form,
        "text": corpus.digests,
        "held_out": corpus.held_out,
        "documents": corpus.documents,
        "tokenizer": hashlib.sha256(tokenizer.to_json().encode()).hexdigest(),
        "shards": [dataclasses.asdict(shard) for shard in corpus.shards],
        "validation": hashlib.sha256(repr(corpus.validation).encode()).hexdigest(),
    }


def _read_content(folder):
    path = Path(folder) / RECORDS
    try:
        content = files.read_json(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: no folder of records: {RECORDS}: {error}") from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise DataError(f"{path}: not of this version of records; prepare again.")
    return content


def _corpus(content):
    """Return the `Corpus` that `write_shard` reads."""
    shards = tuple(Shard(**shard) for shard in content["shards"])
    return Corpus(
        content["form"],
        content["text"],
        shards,
        content["documents"],
        content["held_out"],
        [],
    )


def _shards(folder):
    """Return the folders of all shards, whether they are made or not."""
    count = len(_read_content(folder)["shards"])
    return [_shard(folder, number) for number in range(count)]


def _shard(folder, number):
    return Path(folder) / f"shard-{number:05}"


@functools.lru_cache(maxsize=1)
def _tokenizer(path):
    return read_tokenizer(path)

"""Documents of plain text: which of its lines are sentences, and where one document ends.

    lines    a line is a sentence, or a paragraph; an empty line ends a document
    prose    as in books: an empty line ends a paragraph, three of them or more a document. A title
             as WikiText writes it, " = Title = ", begins one, and WikiText's marks are undone:
             "@-@" is "-", <unk> is [UNK]. A sentence ends after . ! ? and 。！？

Files are plain or .gz. A `Corpus` is where the documents of files lie, in shards; it is found in
one reading, which holds no more than a document and those that are held out. What a shard holds is
then read by itself, in any process.

It leaves out sentences that only grammar can tell: "Mr. A" ends none, "he said. A" always does.
"""

import dataclasses
import gzip
import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from seqkeras.data.texts import COMPRESSED, DataError, too_long
from seqkeras.serving.parsing import bounded_lines

FORMS = {"lines": 1, "prose": 3}  # name -> the empty lines that end a document
MOST_HELD_OUT = 1000  # documents
ROUNDING = 1e-9  # that n / n is 1
MARK = "\ufeff"  # the byte order mark
TITLE = re.compile(r"= [^=].*[^=] =|= [^=] =")
MARKS = ((re.compile(r" ?@([-,.])@ ?"), r"\1"), (re.compile(r"<unk>"), "[UNK]"))
END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[”’」』）]*\s*")
NO_END = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Capt|vs|No)|\b[^\W\d_])\s?\.\s*\Z")


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of a file that begins and ends with documents.

    Args:
        path: path of the file.
        begin, end: in bytes, of a .gz in unpacked ones; None is the file's end.
        first: the number of its first document, of all files.
    """

    path: str
    begin: int
    end: int | None
    first: int


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The places of documents in files.

    Args:
        form: one of `FORMS`.
        digests: path of a file -> SHA-256 of its text.
        shards: tuple of `Shard`s.
        documents: number of documents, held-out ones included.
        held_out: share of the documents that are held out for validation, evenly spread.
        validation: the held-out documents, lists of sentences.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import Corpus
        >>> _ = pathlib.Path("texts.txt").write_text("A b.\\nC.\\n\\nD.\\n\\nE.\\n\\nF.\\n")
        >>> corpus = Corpus.of_files(["texts.txt"], held_out=0.5)
        >>> corpus.documents, corpus.validation  # an empty line ends a document
        (4, [['D.'], ['F.']])
        >>> list(corpus.read(corpus.shards[0]))
        [['A b.', 'C.'], ['E.']]
    """

    form: str
    digests: dict
    shards: tuple
    documents: int
    held_out: float
    validation: list

    @classmethod
    def of_files(
        cls,
        paths: Iterable[Path | str],
        form: str = "lines",
        held_out: float = 0.0,
        shard_bytes: int = 2**25,
    ) -> Self:
        """Return the corpus of files.

        Args:
            paths: paths of the files.
            form: one of `FORMS`.
            held_out: share of documents that are held out, evenly spread: 1,000 documents at most,
                and two at least where two are left.
            shard_bytes: size of a shard, which ends with the document that reaches it.

        Raises:
            DataError: if there is no file, or one can not be read or unpacked, is not UTF-8, or
                holds nothing.
        """
        if not paths:
            raise DataError("there is no file of text; name one at least.")
        corpus = cls._of_files(paths, form, held_out, shard_bytes)
        if held_out and len(corpus.validation) < 2 <= corpus.documents // 2:
            return cls._of_files(paths, form, 2 / corpus.documents, shard_bytes)
        return corpus

    @classmethod
    def _of_files(
        cls, paths: Iterable[Path | str], form: str, held_out: float, shard_bytes: int
    ) -> Self:
        digests, shards, held_out_lines, count = {}, [], {}, 0
        for path in map(Path, paths):
            digest, begin = hashlib.sha256(), None
            for start, lines in _documents(path, form, digest=digest):
                if begin is None or start - begin >= shard_bytes:
                    if begin is not None:
                        shards[-1] = dataclasses.replace(shards[-1], end=start)
                    shards.append(Shard(str(path.resolve()), start, None, count))
                    begin = start
                if is_held_out(count, held_out):
                    held_out_lines[count] = lines
                    if len(held_out_lines) > MOST_HELD_OUT:
                        held_out /= 2
                        held_out_lines = {
                            n: held_out_lines[n] for n in held_out_lines if is_held_out(n, held_out)
                        }
                count += 1
            if begin is None:
                raise DataError(f"{path}: the file is empty.")
            digests[str(path.resolve())] = digest.hexdigest()
        validation = [sentences(lines, form) for lines in held_out_lines.values()]
        return cls(form, digests, tuple(shards), count, held_out, validation)

    def read(self, shard: Shard) -> Iterator[list[str]]:
        """Yield the documents of a shard that are not held out, as lists of sentences."""
        documents = _documents(Path(shard.path), self.form, shard.begin, shard.end)
        for number, (_, lines) in enumerate(documents, shard.first):
            if not is_held_out(number, self.held_out):
                yield sentences(lines, self.form)


def is_held_out(number: int, share: float) -> bool:
    """Return whether the document of a number is one of validation.

    The documents of half a share are among the documents of the whole share.
    """
    before, after = (math.floor(count * share + ROUNDING) for count in (number, number + 1))
    return after > before


def read_documents(path: Path | str, form: str) -> list[list[str]]:
    """Return the documents of a file.

    Args:
        path: path of the file, plain or .gz.
        form: "lines", where a line is a sentence and an empty line ends a document; or "prose",
            where an empty line ends a paragraph, and three of them a document.

    Returns:
        A list of documents, which are lists of sentences.

    Raises:
        DataError: see `Corpus.of_files`.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_documents
        >>> _ = pathlib.Path("texts.txt").write_text("One. Two.\\n\\nThree.\\n")
        >>> read_documents("texts.txt", form="lines")
        [['One. Two.'], ['Three.']]
        >>> read_documents("texts.txt", form="prose")  # one empty line ends a paragraph alone
        [['One.', 'Two.', 'Three.']]
    """
    documents = [sentences(lines, form) for _, lines in _documents(Path(path), form)]
    if not documents:
        raise DataError(f"{path}: the file is empty.")
    return documents


def sentences(lines: Iterable[str], form: str) -> list[str]:
    """Return the sentences of a document's lines."""
    if form == "lines":
        return [line for line in lines if line]
    paragraphs = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        else:
            paragraphs.append([])
    return [
        sentence
        for paragraph in paragraphs
        for sentence in _cut(_without_marks(" ".join(paragraph)))
    ]


def _without_marks(text):
    for mark, replacement in MARKS:
        text = mark.sub(replacement, text)
    return text


def _cut(text):
    """Yield the sentences of a paragraph."""
    start = 0
    for match in END.finditer(text):
        end = match.end()
        following = text[end : end + 1]
        goes_on = following.islower() or following in ".!?…" or NO_END.search(text, start, end)
        if end < len(text) and not goes_on:
            yield text[start:end].rstrip()
            start = end
    if start < len(text):
        yield text[start:]


def _documents(path, form, begin=0, end=None, digest=None):
    """Yield where a document begins, in bytes, and its lines; an empty one is the end of a
    paragraph."""
    offset, start, lines, blanks = begin, begin, [], 0
    for content in _lines(path, begin, digest):
        if end is not None and offset >= end:
            break
        line = (content.removeprefix(MARK) if offset == 0 else content).strip()
        if not line:
            blanks += 1
        else:
            begins = blanks >= FORMS[form] or (form == "prose" and TITLE.fullmatch(line))
            if lines and begins:
                yield start, lines
                lines = []
            elif lines and blanks:
                lines.append("")
            start, blanks = (start if lines else offset), 0
            lines.append(line)
        offset += len(content.encode())
    if lines:
        yield start, lines


def _lines(path, begin, digest):
    """Yield the lines of a file from a byte on."""
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    opened = gzip.open if path.suffix.lower() == COMPRESSED else open
    number = 1
    try:
        with opened(path, "rb") as file:
            file.seek(begin)
            for content in bounded_lines(file):
                if content is None:
                    raise too_long(path, number)
                if digest is not None:
                    digest.update(content)
                yield content.decode("utf-8")
                number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: not a whole gzip file: {str(error).rstrip('.')}.") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{path}, line {number}: the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: can not be read: {error.strerror}.") from error

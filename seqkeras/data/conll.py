"""Sentences whose words have tags: columns of CoNLL, or JSON lines.

    .jsonl     an object a line, with a list of words and a list of as many tags
    all others a word a line, its tag in another column; an empty line ends a sentence

Columns are separated by tabs where the first row has one, else by spaces. Lines of spaces or tabs
alone are empty. `-DOCSTART-`, `#begin document`, `#end document` and `# newdoc` stand between
documents. A line that begins with # is a comment if it can not be a row:

    # sent_id = 1                  CoNLL-U: no tab, where rows have tabs
    #<tab>http://... [2009]        GermEval: rows begin with a number; or another number of columns
    # id 5239<tab>domain=en        MultiCoNER: a tab, where rows have none; or a space in the word

Ranges of words and empty nodes of CoNLL-U are left out: lines whose first field is no whole number
where the first row's number is 1, or a range from 1.

Reference: Tjong Kim Sang and De Meulder 2003, section 2.2, https://aclanthology.org/W03-0419
"""

import functools
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from seqkeras.data.json_lines import json_objects
from seqkeras.data.left_out import usable
from seqkeras.data.texts import DataError, holds_half_a_character, read_lines, suffix_of
from seqkeras.serving.entities import LETTERS, entities, is_tag

BETWEEN_DOCUMENTS = re.compile(r"\s*-DOCSTART-(\s|$)|#(begin|end) document|# newdoc(\s|$)")
NUMBER_ONE = re.compile(r"1(-\d+)?")  # of the first word of CoNLL-U, or of a range from it
SIGNS = "[-_:|./\u2010-\u2015\u2212]"  # between letter and label; all but the first are meant as it
LETTER_FIRST = re.compile(f"([BIMESLUbimeslu]){SIGNS}(.+)", re.DOTALL)  # of an entity's tag
LETTER_LAST = re.compile(f"(.+){SIGNS}([BIMESLU])", re.DOTALL)
MOST_LINES = 1_000_000  # that tell the width of all
OF_COMMAS = "; expected spaces or tabs between columns, or a .jsonl"


class Sentence(NamedTuple):
    """Words of a sentence with their tags.

    Attributes:
        line: number of the line where the sentence begins.
        words: the words.
        tags: a tag for each word.
        lines: number of the line of each word.
        document: index of the document, from 0: the number of marks between documents before it.

    Example:
        >>> from seqkeras.data import Sentence
        >>> sentence = Sentence(1, ("Ada", "sleeps"), ("B-PER", "O"), lines=(1, 2))
        >>> dict(zip(sentence.words, sentence.tags))
        {'Ada': 'B-PER', 'sleeps': 'O'}
    """

    line: int
    words: tuple[str, ...]
    tags: tuple[str, ...]
    lines: Sequence[int]
    document: int = 0


class Sentences(NamedTuple):
    """The sentences of a file, and what was wrong with those that are left out."""

    sentences: Sequence[Sentence]
    left_out: list[str]


def read_sentences(
    path: Path | str,
    words: int | str | None = None,
    tags: int | str | None = None,
    skip_bad: bool = False,
    keep: Callable[[Iterable[Sentence]], Sequence[Sentence]] = list,
) -> Sentences:
    """Return the sentences of a file.

    Args:
        path: path of the file, plain or .gz.
        words, tags: columns of words and of tags. In CoNLL a number, 1 for the first column, -1 for
            the last; default: 1 and -1. In JSON lines a name; default: "tokens" and "tags".
        skip_bad: leave out sentences that can not be used; otherwise the first such sentence is an
            error.
        keep: see `seqkeras.data.left_out.usable`.

    Returns:
        `Sentences`, one at least.

    Raises:
        DataError: if the file can not be read, has no sentence, or a line is not in its form.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_sentences
        >>> _ = pathlib.Path("names.conll").write_text("Ada B-PER\\nsleeps O\\n\\nBob B-PER\\n")
        >>> [sentence.words for sentence in read_sentences("names.conll").sentences]
        [('Ada', 'sleeps'), ('Bob',)]
    """
    if suffix_of(path) == ".jsonl":
        rows = json_objects(path, read_lines(path))
        read = functools.partial(_of_object, path, words or "tokens", tags or "tags")
    else:
        columns = _Columns.of(path, _number(words, 1), _number(tags, -1))
        rows, read = columns.groups(), columns.sentence

    def with_words(sentences):
        return keep(sentence for sentence in sentences if sentence.words)

    return Sentences(*usable(path, rows, read, "sentence", skip_bad, with_words))


def _number(column, default):
    if column is None:
        return default
    try:
        number = int(column)
    except ValueError:
        number = 0
    if number == 0:
        raise DataError(
            f"a column of CoNLL must be a number from 1, or from the end below 0; received "
            f"{column!r:.40}."
        )
    return number


class _Columns(NamedTuple):
    """The layout of columns in the lines of a file.

    Attributes:
        path: path of the file, for errors.
        separator: between columns, None for spaces.
        width: how many there are: as most of the first `MOST_LINES` lines have.
        numbered: whether the first column has the numbers of CoNLL-U.
        places: indices of the words and of the tags.
        words, tags: a field -> the word or the tag in it, of those that were read.
    """

    path: Path | str
    separator: str | None
    width: int
    numbered: bool
    places: list
    words: dict[str, str]
    tags: dict[str, str]

    @classmethod
    def of(cls, path: Path | str, *columns: int) -> Self:
        line, first = _first_row(path)
        if not line:
            raise DataError(f"{path}: there is no sentence in it.")
        separator = "\t" if "\t" in first else None
        are_rows = first.startswith("#")  # as no line is anything else
        widths = Counter(
            len(content.split(separator))
            for _, content, _ in itertools.islice(_contents(path), MOST_LINES)
            if content and (are_rows or not content.startswith("#"))
        )
        [(width, _)] = widths.most_common(1)
        if width == 1:
            raise DataError(
                f"{path}, line {line}: expected a word and its tag, with spaces or tabs between "
                f"columns, or a .jsonl; found one column, {first!r:.40}."
            )
        for column in columns:
            if not -width <= column <= width:
                raise DataError(
                    f"{path}, line {line}: there is no column {column}; there are {width}."
                )
        numbered = separator == "\t" and NUMBER_ONE.fullmatch(first.split(separator)[0])
        places = [column - (column > 0) for column in columns]
        return cls(path, separator, width, bool(numbered), places, {}, {})

    def groups(self):
        """Yield for each sentence a list of (number of the line, fields), and its document."""
        rows, of_rows = [], 0
        separator, width, numbered = self.separator, self.width, self.numbered
        for line, content, document in itertools.chain(_contents(self.path), [(0, "", 0)]):
            if not content:
                if rows:
                    yield rows, of_rows
                    rows = []
                continue
            fields = content.split(separator)
            if content[0] == "#" and self._is_comment(content, fields):
                continue
            if not numbered or len(fields) != width or fields[0].isdecimal():
                rows.append((line, fields))
                of_rows = document

    def _is_comment(self, content, fields):
        """Return whether a line that begins with # can not be a row."""
        if self.separator and (self.numbered or len(fields) == 1 or " " in fields[0]):
            return True
        others = not self.separator and "\t" in content or len(fields) != self.width
        return others and content[1:2].isspace()  # "#tag" is a word, of a row that is not whole

    def sentence(self, rows, document):
        """Return the `Sentence` of a list and a document that `groups` yields."""
        words, tags = [], []
        of_word, of_tag = self.places
        width, known_words, known_tags = self.width, self.words, self.tags
        for line, fields in rows:
            if len(fields) != width:
                raise DataError(
                    f"{self.path}, line {line}: expected {width} columns, as most lines have; "
                    f"found {len(fields)}{OF_COMMAS if suffix_of(self.path) == '.csv' else ''}."
                )
            word, tag = fields[of_word], fields[of_tag]
            words.append(known_words.get(word) or self._word(line, word))
            tags.append(known_tags.get(tag) or self._tag(line, tag, words[-1]))
        first, last = rows[0][0], rows[-1][0]
        lines: Sequence[int] = range(first, last + 1)
        if len(lines) != len(rows):  # there are others between them
            lines = tuple(line for line, _ in rows)
        return Sentence(first, tuple(words), tuple(tags), lines, document)

    def _word(self, line, field):
        word = field.strip()
        _require_word(self.path, line, word)
        return self.words.setdefault(field, word)

    def _tag(self, line, field, word):
        tag = field.strip()
        if not tag:
            raise DataError(f"{self.path}, line {line}: the word {word!r:.40} has no tag.")
        return self.tags.setdefault(field, tag)


def _contents(path):
    """Yield (number, content, document) of the lines of a file; what ends a sentence has no
    content."""
    document = 0
    for line, content in enumerate(read_lines(path), start=1):
        content = content.rstrip("\r\n")
        may_be_mark = content.startswith("#") or "-DOCSTART-" in content
        if may_be_mark and BETWEEN_DOCUMENTS.match(content):
            document += 1
            content = ""
        yield line, "" if content.isspace() else content, document


def _first_row(path):
    """Return (number, content) of the first line that is no comment, else of the first comment;
    (0, "") where there is neither."""
    comment = 0, ""
    for line, content, _ in _contents(path):
        if content and not content.startswith("#"):
            return line, content
        if content and not comment[0]:
            comment = line, content
    return comment


def _of_object(path, words_name, tags_name, line, row):
    """Return the `Sentence` of an object of JSON lines; without words it is none."""
    for name, option in ((words_name, "--word-column"), (tags_name, "--tag-column")):
        if name not in row:
            raise DataError(
                f"{path}, line {line}: there is no {name!r}; there are "
                f"{', '.join(map(repr, row))}; {option} chooses it."
            )
        values = row[name]
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise DataError(
                f"{path}, line {line}: {name!r} must be a list of strings; found "
                f"{json.dumps(values, ensure_ascii=False):.40}."
            )
    words, tags = tuple(row[words_name]), tuple(row[tags_name])
    if len(words) != len(tags):
        raise DataError(
            f"{path}, line {line}: needs one tag for each word; found {len(words)} words and "
            f"{len(tags)} tags."
        )
    for word in words:
        _require_word(path, line, word)
    return Sentence(line, words, tags, (line,) * len(words))


def _require_word(path, line, word):
    if word.split() != [word]:
        raise DataError(
            f"{path}, line {line}: a word must be there, and hold no space; found {word!r:.40}."
        )
    if holds_half_a_character(word):
        raise DataError(f"{path}, line {line}: the word {word!r:.40} holds half of a character.")


def scheme_of(tags: Iterable[str], odd: float = 0.0) -> str | None:
    """Return the scheme of a file's tags: "IOB2" (for IOB1, too), "IOBES", "BILOU" or "BMES"; None
    for tags that spell no entities, as parts of speech.

    Args:
        tags: an iterable of strings, or a `Counter` of them.
        odd: share of the tags that may be of no scheme, typing errors; over 0 one of them may be.
    """
    counts = Counter(tags)
    fitting = {
        name: sum(count for tag, count in counts.items() if is_tag(tag, name)) for name in LETTERS
    }
    scheme = max(fitting, key=fitting.__getitem__)
    most_odd = max(1, odd * counts.total()) if odd else 0
    if fitting[scheme] == counts["O"] or counts.total() - fitting[scheme] > most_odd:
        return None
    return scheme


def intended_tag(tag: str) -> str:
    """Return the tag of entities that another spelling probably means: O of 0 or o; B-PER of B_PER,
    B:PER, B.PER, b-PER, PER-B, or with a dash. Any other tag stays as it is.

    Args:
        tag: a string.
    """
    if tag in ("0", "o"):
        return "O"
    before, after = LETTER_FIRST.fullmatch(tag), LETTER_LAST.fullmatch(tag)
    if before:
        return f"{before[1].upper()}-{before[2]}"
    return f"{after[2]}-{after[1]}" if after else tag


def is_iob1(sentences: Iterable[Sequence[str]]) -> bool:
    """Return whether tags with the letters of IOB2 are IOB1: B begins no entity but one after
    another of its label.

    Args:
        sentences: for each the tags of its words.
    """
    return not any(
        tag[:2] == "B-" and before[2:] != tag[2:]
        for tags in sentences
        for before, tag in itertools.pairwise(("O", *tags))
    )


def continued(tag: str, scheme: str | None) -> str:
    """Return the tag of what follows in a word of a tag: of a scheme's letters, I of B; else the
    same.

    Args:
        tag: tag of the word.
        scheme: "IOB2", or None of tags that spell no entities.
    """
    return f"I-{tag[2:]}" if scheme == "IOB2" and tag != "O" else tag


def begun_inside(tags: Sequence[str]) -> int:
    """Return how many entities of a sentence begin with the letter of an entity's inside, I or M,
    or of its end, E or L.

    Args:
        tags: tags of the sentence's words, of any scheme.
    """
    return sum(tags[first][:2] in ("I-", "M-", "E-", "L-") for _, first, _ in entities(tags))


def to_iob2(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags of IOB1 in IOB2: the first tag of an entity is B; tags of IOB2 stay as they are.

        IOB1: I-PER I-PER B-PER O    IOB2: B-PER I-PER B-PER O

    Args:
        tags: tags of a sentence's words, an iterable.

    Returns:
        A tuple of tags.

    Reference: Ramshaw and Marcus 1995; Tjong Kim Sang and Veenstra 1999, section 2.1,
    https://aclanthology.org/E99-1023

    Example:
        >>> from seqkeras.data import to_iob2
        >>> to_iob2(["I-PER", "I-PER", "B-PER", "O"])
        ('B-PER', 'I-PER', 'B-PER', 'O')
    """
    converted, before = [], "O"
    for tag in tags:
        letter, _, label = tag.partition("-")
        begins = letter == "I" and (before == "O" or before[2:] != label)
        converted.append(f"B-{label}" if begins else tag)
        before = tag
    return tuple(converted)

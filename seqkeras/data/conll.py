"""Sentences whose words have tags: columns of CoNLL, or JSON lines.

    .jsonl     an object a line, with a list of words and a list of as many tags
    all others a word a line, its tag in another column; an empty line ends a sentence

Columns are separated by tabs where the first line has one, else by spaces. Lines of spaces or tabs
alone are empty, `-DOCSTART-` begins a document, and with tabs a line that begins with # is a
comment, as in CoNLL-U. Ranges of words and empty nodes of CoNLL-U are left out: lines whose first
field is no whole number where that of the first line is 1, or a range from 1.

Reference: Tjong Kim Sang and De Meulder 2003, section 2.2, https://aclanthology.org/W03-0419
"""

import itertools
import re
from collections import Counter
from typing import NamedTuple

from seqkeras.data.json_lines import json_objects
from seqkeras.data.texts import DataError, holds_half_a_character, lines_of, read_text, suffix_of
from serving.entities import LETTERS, entities, is_tag

DOCUMENT = "-DOCSTART-"
NUMBER_ONE = re.compile(r"1(-\d+)?")  # of the first word of CoNLL-U, or of a range from it
OF_COMMAS = "; expected spaces or tabs between columns, or a .jsonl"


class Sentence(NamedTuple):
    """Words with their tags, and the line where they begin."""

    line: int
    words: tuple[str, ...]
    tags: tuple[str, ...]


def read_sentences(path, words=None, tags=None):
    """The sentences of a file.

    Args:
        path: of the file, plain or .gz.
        words, tags: which column they are: of CoNLL a number from 1, or from the end below 0, by
            default the first and the last; of JSON lines a name, by default "tokens" and "tags".

    Returns:
        A list of `Sentence`, one at least.

    Raises:
        DataError: if the file can not be read, has no sentence, or a line is not in its form.
    """
    text = read_text(path)
    if suffix_of(path) == ".jsonl":
        sentences = _of_json_lines(path, text, words or "tokens", tags or "tags")
    else:
        sentences = _of_columns(path, text, _number(words, 1), _number(tags, -1))
    found = [*sentences]
    if not found:
        raise DataError(f"{path}: there is no sentence in it.")
    return found


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


def _of_columns(path, text, word_column, tag_column):
    rows, width, separator, numbered = [], None, None, False
    has_tabs = "\t" in text
    for line, content in enumerate(lines_of(text), start=1):
        if has_tabs and content.startswith("#") and "\t" not in content:
            continue
        if not content.strip() or content.split()[0] == DOCUMENT:
            if rows:
                yield _sentence(rows)
            rows = []
            continue
        if width is None:
            separator = "\t" if "\t" in content else None
            width = len(content.split(separator))
            if width == 1:
                raise DataError(
                    f"{path}, line {line}: expected a word and its tag, with spaces or tabs "
                    f"between columns, or a .jsonl; found one column, {content!r:.40}."
                )
            numbered = separator == "\t" and NUMBER_ONE.fullmatch(content.split(separator)[0])
            for column in (word_column, tag_column):
                if not -width <= column <= width:
                    raise DataError(
                        f"{path}, line {line}: there is no column {column}; there are {width}."
                    )
        fields = content.split(separator)
        if len(fields) != width:
            raise DataError(
                f"{path}, line {line}: expected {width} columns, as above; found {len(fields)}"
                f"{OF_COMMAS if suffix_of(path) == '.csv' else ''}."
            )
        if numbered and not fields[0].isdecimal():
            continue
        word, tag = (fields[column - (column > 0)].strip() for column in (word_column, tag_column))
        _require_word(path, line, word)
        if not tag:
            raise DataError(f"{path}, line {line}: the word {word!r:.40} has no tag.")
        rows.append((line, word, tag))
    if rows:
        yield _sentence(rows)


def _sentence(rows):
    lines, words, tags = zip(*rows)
    return Sentence(lines[0], words, tags)


def _of_json_lines(path, text, words_name, tags_name):
    for line, row in json_objects(path, text):
        for name in (words_name, tags_name):
            values = row.get(name)
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise DataError(f"{path}, line {line}: {name!r} must be a list of strings.")
        words, tags = tuple(row[words_name]), tuple(row[tags_name])
        if len(words) != len(tags):
            raise DataError(
                f"{path}, line {line}: needs one tag for each word; found {len(words)} words and "
                f"{len(tags)} tags."
            )
        for word in words:
            _require_word(path, line, word)
        if words:
            yield Sentence(line, words, tags)


def _require_word(path, line, word):
    if word.split() != [word]:
        raise DataError(
            f"{path}, line {line}: a word must be there, and hold no space; found {word!r:.40}."
        )
    if holds_half_a_character(word):
        raise DataError(f"{path}, line {line}: the word {word!r:.40} holds half of a character.")


def scheme_of(tags, odd=0.0):
    """The scheme of a file's tags: "IOB2" (for IOB1, too), "IOBES" or "BILOU"; None for tags that
    spell no entities, as parts of speech.

    Args:
        tags: an iterable of strings.
        odd: share of the tags that may be of no scheme, typing errors; over 0 one of them may be.
    """
    counts = Counter(tags)
    fitting = {
        name: sum(count for tag, count in counts.items() if is_tag(tag, name)) for name in LETTERS
    }
    scheme = max(fitting, key=fitting.get)
    most_odd = max(1, odd * counts.total()) if odd else 0
    if fitting[scheme] == counts["O"] or counts.total() - fitting[scheme] > most_odd:
        return None
    return scheme


def is_iob1(sentences):
    """Whether tags with the letters of IOB2 are IOB1: B begins no entity but one behind another of
    its label.

    Args:
        sentences: for each the tags of its words.
    """
    return not any(
        tag[:2] == "B-" and before[2:] != tag[2:]
        for tags in sentences
        for before, tag in itertools.pairwise(("O", *tags))
    )


def begun_inside(tags):
    """How many entities of a sentence begin with the letter of an entity's inside, I, or of its
    end, E or L.

    Args:
        tags: of the sentence's words, of any scheme.
    """
    return sum(tags[first][:2] in ("I-", "E-", "L-") for _, first, _ in entities(tags))


def to_iob2(tags):
    """Tags of IOB1 in IOB2: whatever begins an entity is B; those of IOB2 stay as they are.

        IOB1: I-PER I-PER B-PER O    IOB2: B-PER I-PER B-PER O

    Args:
        tags: of a sentence's words, an iterable.

    Reference: Ramshaw and Marcus 1995; Tjong Kim Sang and Veenstra 1999, section 2.1,
    https://aclanthology.org/E99-1023
    """
    found, before = [], "O"
    for tag in tags:
        letter, _, label = tag.partition("-")
        begins = letter == "I" and (before == "O" or before[2:] != label)
        found.append(f"B-{label}" if begins else tag)
        before = tag
    return tuple(found)

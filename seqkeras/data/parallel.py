"""Pairs of texts from a user's files: sentences and their translations, words and their phonemes.

    two files   line n of the one is what line n of the other is translated to
    one file    source, a tab, target; no header, and what stands after a second tab is not read,
                as the attributions of Tatoeba's sentences
    CMUdict     a word and its phonemes with spaces between; word(2) is a second pronunciation, and
                a comment begins with " #", or is a line that begins with ;;;

All in UTF-8, plain or .gz. Columns with names: `seqkeras.data.columns`.

Reference: https://tatoeba.org, https://github.com/cmusphinx/cmudict
"""

import re
from pathlib import Path

from seqkeras.data.texts import DataError, lines_of, read_text

VARIANT = re.compile(r"\([0-9]+\)$")
STRESS = re.compile(r"[0-2]$")


def read_parallel(
    source_path: Path | str, target_path: Path | str
) -> list[tuple[int, tuple[str, str]]]:
    """Return the lines of two files, side by side.

    Args:
        source_path, target_path: paths of the files, plain or .gz, with a text a line.

    Returns:
        A list of (number of the line, (source, target)).

    Raises:
        DataError: if a file can not be read, they differ in length, or a line is empty.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_parallel
        >>> for name, text in (("news.de", "Guten Tag\\n"), ("news.en", "Hello\\n")):
        ...     _ = pathlib.Path(name).write_text(text)
        >>> read_parallel("news.de", "news.en")
        [(1, ('Guten Tag', 'Hello'))]
    """
    sources, targets = (lines_of(read_text(path)) for path in (source_path, target_path))
    if len(sources) != len(targets):
        raise DataError(
            f"{source_path} and {target_path}: must have as many lines as each other; they have "
            f"{len(sources):,} and {len(targets):,}."
        )
    for line, texts in enumerate(zip(sources, targets), start=1):
        for path, text in zip((source_path, target_path), texts):
            if not text.strip():
                raise DataError(
                    f"{path}, line {line}: expected a sentence; the line is empty: remove it from "
                    "both files."
                )
    return list(enumerate(zip(sources, targets), start=1))


def read_tab_separated(path: Path | str, way_out: str = "") -> list[tuple[int, tuple[str, str]]]:
    """Return the first two fields of each line of a file without a header; empty lines are passed
    over.

    Args:
        path: path of the file.
        way_out: what the user may do about a line without a tab, for the error.

    Returns:
        A list of (number of the line, (source, target)), one at least.

    Raises:
        DataError: if the file can not be read, or a line has no tab or nothing on one side of it.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_tab_separated
        >>> _ = pathlib.Path("deu.txt").write_text("Go.\\tGeh.\\tCC-BY 2.0\\n\\nHi.\\tHallo!\\n")
        >>> read_tab_separated("deu.txt")
        [(1, ('Go.', 'Geh.')), (3, ('Hi.', 'Hallo!'))]
    """
    rows = []
    for line, content in enumerate(lines_of(read_text(path)), start=1):
        if not content.strip(" "):
            continue
        source, tab, rest = content.partition("\t")
        target = rest.partition("\t")[0]
        if not tab:
            raise DataError(
                f"{path}, line {line}: expected a source, a tab and its target; found no tab in "
                f"{content!r:.60}{way_out}."
            )
        for name, text in (("source", source), ("target", target)):
            if not text.strip():
                raise DataError(f"{path}, line {line}: the {name} is empty; remove the line.")
        rows.append((line, (source, target)))
    return rows


def read_pronunciations(path: Path | str, stress: bool = True) -> list[tuple[int, tuple[str, str]]]:
    """Return words of a file in CMUdict's form with their phonemes, each other variant as a pair.

    Args:
        path: path of the file.
        stress: False leaves out the digits after vowels; variants that differ in these alone are
            one.

    Returns:
        A list of (number of the line, (word, phonemes with a space between)), one at least.

    Raises:
        DataError: if the file can not be read, or a line holds a word without phonemes.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_pronunciations
        >>> _ = pathlib.Path("cmudict.dict").write_text("read R EH1 D\\nread(2) R IY1 D\\n")
        >>> read_pronunciations("cmudict.dict", stress=False)
        [(1, ('read', 'R EH D')), (2, ('read', 'R IY D'))]
    """
    rows = {}
    for line, content in enumerate(lines_of(read_text(path)), start=1):
        entry = content.partition(" #")[0].split()
        if not entry or content.startswith(";;;"):
            continue
        word, *phonemes = entry
        if not phonemes:
            raise DataError(f"{path}, line {line}: expected phonemes after the word {word!r:.40}.")
        if not stress:
            phonemes = [STRESS.sub("", phoneme) for phoneme in phonemes]
        rows.setdefault((VARIANT.sub("", word), " ".join(phonemes)), line)
    if not rows:
        raise DataError(f"{path}: there is no word in it.")
    return [(line, pair) for pair, line in rows.items()]

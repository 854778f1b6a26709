"""Pairs of texts from a user's files: sentences and their translations, words and their phonemes.

    two files   line n of the one is what line n of the other is translated to
    one file    source, a tab, target; no header, and what stands after a second tab is not read,
                as the attributions of Tatoeba's sentences
    CMUdict     a word and its phonemes with spaces between; word(2) is a second pronunciation, and
                a comment begins with " #", or is a line that begins with ;;;

All in UTF-8, plain or .gz. Columns with names: `seqkeras.data.columns`.

Reference: https://tatoeba.org, https://github.com/cmusphinx/cmudict
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from seqkeras.data.texts import DataError, read_lines

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
    return [*each_parallel(source_path, target_path)]


def each_parallel(
    source_path: Path | str, target_path: Path | str
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield what `read_parallel` returns, which has the arguments and errors, while the files are
    read.

    Example:
        >>> import pathlib
        >>> from seqkeras.data.parallel import each_parallel
        >>> _ = pathlib.Path("news.de").write_text("Guten Tag\\n")
        >>> next(each_parallel("news.de", "news.de"))
        (1, ('Guten Tag', 'Guten Tag'))
    """
    paths = source_path, target_path
    for line, lines in enumerate(itertools.zip_longest(*map(read_lines, paths)), start=1):
        if None in lines:
            sizes = [sum(1 for _ in read_lines(path)) for path in paths]
            raise DataError(
                f"{source_path} and {target_path}: must have as many lines as each other; they "
                f"have {sizes[0]:,} and {sizes[1]:,}."
            )
        source, target = (text.removesuffix("\n").removesuffix("\r") for text in lines)
        for path, text in zip(paths, (source, target)):
            if not text.strip():
                raise DataError(
                    f"{path}, line {line}: expected a sentence; the line is empty: remove it from "
                    "both files."
                )
        yield line, (source, target)


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
    return [*each_tab_separated(path, way_out)]


def each_tab_separated(
    path: Path | str, way_out: str = ""
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield what `read_tab_separated` returns, which has the arguments and errors, while the file
    is read.

    Example:
        >>> import pathlib
        >>> from seqkeras.data.parallel import each_tab_separated
        >>> _ = pathlib.Path("deu.txt").write_text("Go.\\tGeh.\\n")
        >>> next(each_tab_separated("deu.txt"))
        (1, ('Go.', 'Geh.'))
    """
    for line, content in enumerate(read_lines(path), start=1):
        content = content.removesuffix("\n").removesuffix("\r")
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
        yield line, (source, target)


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
    for line, content in enumerate(read_lines(path), start=1):
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

"""Columns of a file with a row for each example: CSV, TSV, or JSON lines, by the file's suffix.

    .csv    a header; fields in double quotes where they hold commas or line ends (RFC 4180)
    .tsv    a header; tabs between the fields, and quotes are characters like others, as in GLUE
    .jsonl  an object a line; a number or a boolean is read as JSON writes it

Files without a header have columns by number. All in UTF-8, with a byte order mark or without.
Empty lines are passed over. Files may be packed, as .csv.gz. Spreadsheets are left out.
"""

import csv
import dataclasses
import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from seqkeras.data.json_lines import json_objects
from seqkeras.data.texts import (
    DataError,
    first_line,
    holds_half_a_character,
    read_lines,
    suffix_of,
)
from seqkeras.serving.parsing import MOST_OF_LINE, about_separators


class WaysOut(NamedTuple):
    """The options that errors name as ways out; None for no option."""

    empty: str | None = None  # leaves out rows with an empty field
    form: str | None = None  # tells the form of a file
    header: str | None = None  # reads a file without a header


NO_WAYS_OUT = WaysOut()


def read_columns(
    path: Path | str,
    names: Sequence[str],
    may_be_empty: Collection[str] = (),
    form: str | None = None,
    header: bool = True,
    options: tuple[str, ...] | None = None,
    ways_out: WaysOut = NO_WAYS_OUT,
) -> list[tuple[int, tuple[str, ...]]]:
    """Return the columns of a file.

    Args:
        path: path of the file.
        names: names of the columns to return, in order. Without a header: numbers of columns as
            texts, "1" for the first column, "-1" for the last.
        may_be_empty: names of the columns whose fields may be empty, or null in JSON.
        form: "csv", "tsv" or "jsonl"; None goes by the file's suffix.
        header: whether the first line of a .csv or .tsv names the columns.
        options: for each name the option that gives it, for errors; None for no options.
        ways_out: `WaysOut`, the options that help, for errors.

    Returns:
        A list of (number of the line, tuple of texts): a row for each example, one at least.

    Raises:
        DataError: if the file can not be read, is empty or in another format, lacks a column, or
            a row has a field too many or too few, or an empty one that may not be.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_columns
        >>> _ = pathlib.Path("reviews.csv").write_text('text,label\\n"Nice, really",good\\n')
        >>> read_columns("reviews.csv", ["label", "text"])
        [(2, ('good', 'Nice, really'))]
    """
    return [*each_row(path, names, may_be_empty, form, header, options, ways_out)]


def each_row(
    path: Path | str,
    names: Sequence[str],
    may_be_empty: Collection[str] = (),
    form: str | None = None,
    header: bool = True,
    options: tuple[str, ...] | None = None,
    ways_out: WaysOut = NO_WAYS_OUT,
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the rows that `read_columns` returns, which has the arguments and errors, while the
    file is read: a file of any size.

    Example:
        >>> import pathlib
        >>> from seqkeras.data.columns import each_row
        >>> _ = pathlib.Path("reviews.csv").write_text("text,label\\nfine,good\\n")
        >>> next(each_row("reviews.csv", ["label", "text"]))
        (2, ('good', 'fine'))
    """
    path = Path(path)
    read = _reader(path, form, ways_out)
    _require_distinct(path, names)
    is_empty = True
    columns = Columns(tuple(names), tuple(may_be_empty), header, options, ways_out)
    for line, values in read(path, read_lines(path), columns):
        for name, value in zip(names, values):
            if not value.strip() and name not in may_be_empty:
                other = f", or leave it out by {ways_out.empty}" if ways_out.empty else ""
                raise DataError(f"{path}, line {line}: {name!r} is empty; remove the line{other}.")
            if holds_half_a_character(value):
                raise DataError(f"{path}, line {line}: {name!r} holds half of a character.")
        is_empty = False
        yield line, tuple(values)
    if is_empty:
        raise DataError(f"{path}: there is no example in it.")


def require_columns(
    path: Path | str,
    names: Sequence[str],
    form: str | None = None,
    header: bool = True,
    options: tuple[str, ...] | None = None,
    ways_out: WaysOut = NO_WAYS_OUT,
) -> None:
    """Refuse a file whose name or first line shows that `read_columns` refuses it: in a moment,
    however large the file is. A first line that does not show it is left to `read_columns`.

    Args:
        path, names, form, header, options, ways_out: see `read_columns`.

    Raises:
        DataError: as `read_columns` raises it.

    Example:
        >>> import pathlib
        >>> from seqkeras.data.columns import require_columns
        >>> _ = pathlib.Path("reviews.csv").write_text("text,label\\nfine,good\\n")
        >>> require_columns("reviews.csv", ["text", "label"])
    """
    path = Path(path)
    read = _reader(path, form, ways_out)
    _require_distinct(path, names)
    line = first_line(path)
    if line.strip() and not (read is _of_csv and line.count('"') % 2):
        columns = Columns(tuple(names), tuple(names), header, options, ways_out)
        next(iter(read(path, [f"{line}\n"], columns)), None)


def column_names(path: Path | str) -> list[str]:
    """Return the names of a file's columns, from the header or the first JSON object.

    Args:
        path: path of the file.

    Returns:
        A list of names, in the order of the file.

    Raises:
        DataError: if the file can not be read, is empty or in another format.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import column_names
        >>> _ = pathlib.Path("reviews.csv").write_text('text,label\\n"Nice, really",good\\n')
        >>> column_names("reviews.csv")
        ['text', 'label']
    """
    path = Path(path)
    read, lines = _reader(path), read_lines(path)
    if read is _of_json_lines:
        _, row = next(json_objects(path, lines), (0, {}))
        return [*row]
    rows = _rows_of_tsv(lines) if read is _of_tsv else _rows_of_csv(path, lines)
    return next(row for row, _ in rows if row)


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns to read; the fields are the arguments of `read_columns`."""

    names: tuple
    may_be_empty: tuple = ()
    header: bool = True
    options: tuple | None = None
    ways_out: WaysOut = NO_WAYS_OUT

    def places(self, path: Path | str, first: Sequence[str]) -> list[int]:
        """Return the index of each column in a row.

        Args:
            path: path of the file, for errors.
            first: the fields of the first row, the header if there is one.

        Raises:
            DataError: if there is no such column.
        """
        if not self.header:
            return [self._place_of_number(path, name, len(first)) for name in self.names]
        self.require(path, first, self._about_header(first))
        twice = [name for name in self.names if first.count(name) > 1]
        if twice:
            raise DataError(f"{path}: the header names {twice[0]!r} twice.")
        return [first.index(name) for name in self.names]

    def require(self, where: object, names: Collection[str], way_out: str = "") -> None:
        """Raise a DataError unless all names are among the names of a row."""
        missing = next((name for name in self.names if name not in names), None)
        if missing is not None:
            raise DataError(
                f"{where}: there is no column {missing!r}; there are {', '.join(map(repr, names))}"
                f"{self._by_option(missing)}{way_out}."
            )

    def _about_header(self, first):
        """Return what else may be wrong where a first line lacks a column."""
        if about := about_separators(first):
            return f"; {about}, in .tsv by tabs"
        way_out = self.ways_out.header
        return f"; {way_out} reads a file whose first line is a row" if way_out else ""

    def _place_of_number(self, path, name, width):
        try:
            number = int(name)
        except ValueError:
            number = 0
        if not 1 <= abs(number) <= width:
            raise DataError(
                f"{path}: without a header a column is a number from 1 to {width}, or from -1 to "
                f"{-width} from the last; received {name!r:.40}{self._by_option(name)}."
            )
        return number - (number > 0)

    def _by_option(self, name):
        return f"; {self.options[self.names.index(name)]} chooses it" if self.options else ""


def _require_distinct(path, names):
    if len(set(names)) < len(names):
        raise DataError(f"{path}: the columns must be distinct; received {', '.join(names)}.")


def _reader(path, form=None, ways_out=NO_WAYS_OUT):
    """Return what reads a file, by its suffix or its form."""
    readers = {".csv": _of_csv, ".tsv": _of_tsv, ".jsonl": _of_json_lines}
    suffix = suffix_of(path) if form is None else f".{form}"
    if suffix not in readers:
        other = f"; {ways_out.form} tells the form of another name" if ways_out.form else ""
        raise DataError(f"{path}: the name must end in {', '.join(readers)}{other}.")
    return readers[suffix]


def _of_csv(path, lines, columns):
    yield from _of_fields(path, _rows_of_csv(path, lines), columns)


def _rows_of_csv(path, lines):
    """Yield (fields of a row, number of its last line)."""
    # One line more, which only a row with an open quote reaches.
    reader, begin = csv.reader(itertools.chain(lines, ["\n"]), strict=True), 1
    try:
        while (row := _next_of(reader)) is not None:
            yield row, reader.line_num
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(_not_csv(path, error, begin, reader.line_num)) from error


def _next_of(reader):
    """Return the next row of a `csv.reader`, or None, with fields as long as a line may be; the
    limit of the csv module, 131,072 characters, holds for all of its users."""
    limit = csv.field_size_limit(MOST_OF_LINE)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)


def _not_csv(path, error, begin, line):
    """Return what is wrong with a row that begins in one line and can not be read on in `line`."""
    quotes = 'a field that holds a quote stands in quotes, and the quote is written twice: ""'
    if line > sum(1 for _ in read_lines(path)):
        return f"{path}, line {begin}: a quote of the row that begins here never closes; {quotes}."
    row = "" if line == begin else f" in the row that begins in line {begin}"
    if "field limit" in str(error):
        return (
            f"{path}, line {line}: a field{row} has more than {MOST_OF_LINE:,} characters; close "
            "its quote, or cut it into several."
        )
    return f"{path}, line {line}: not CSV ({error}){row}; {quotes}."


def _of_tsv(path, lines, columns):
    yield from _of_fields(path, _rows_of_tsv(lines), columns)


def _rows_of_tsv(lines):
    lines = (line.rstrip("\r\n") for line in lines)
    return ((line.split("\t") if line else [], number) for number, line in enumerate(lines, 1))


def _of_fields(path, fields, columns):
    """Yield the selected fields of rows, of which the first may be the header."""
    fields = ((row, line) for row, line in fields if row)
    first, line = next(fields)
    places = columns.places(path, first)
    if not columns.header:
        fields = itertools.chain([(first, line)], fields)
    for row, line in fields:
        if len(row) != len(first):
            where = "the header" if columns.header else "the first row"
            raise DataError(
                f"{path}, line {line}: expected {len(first)} fields, as in {where}; found "
                f"{len(row)}."
            )
        yield line, [row[index] for index in places]


def _of_json_lines(path, lines, columns):
    names, may_be_empty = columns.names, columns.may_be_empty
    for line, row in json_objects(path, lines):
        columns.require(f"{path}, line {line}", row)
        values = ["" if row[name] is None and name in may_be_empty else row[name] for name in names]
        for name, value in zip(names, values):
            if not isinstance(value, str | int | float) or value != value:
                raise DataError(
                    f"{path}, line {line}: {name!r} must be a text or a number; found "
                    f"{json.dumps(value, ensure_ascii=False):.40}."
                )
        yield line, [value if isinstance(value, str) else json.dumps(value) for value in values]

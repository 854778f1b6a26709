"""Streams of the rows of a CSV file, line by line, one for each series: `seqkeras stream`."""

import contextlib
import csv
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .categories import category_of
from .lines import text_of
from .replacing import written_aside

ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def has_stream_of_rows(pipeline: Any) -> bool:
    """Return whether a pipeline answers frames that come alone, without known rows beside each."""
    return "stream" in pipeline.manifest.graphs and len(getattr(pipeline, "fields", ())) < 2


class RowStreams:
    """The streams of a CSV file's rows.

        with RowStreams(pipeline, state) as streams:
            for series, answer in streams.answers(lines):

    The block's end writes the state, also if an error, SIGTERM or SIGHUP ends it.

    Args:
        pipeline: the result of `serving.load`.
        state: path of a file of the stream's state, read if it exists and written; None for none.
            It keeps the stream of one series.
        fills: whether a gap before a row is filled with rows without values, which have no line;
            else the row is refused.

    Raises:
        BundleError: if the bundle can not be opened.
        OSError: if the state can not be read or written.
        ValueError: if the bundle has no stream, or reads known rows beside each row, or the state
            is no state of it.
    """

    def __init__(self, pipeline: Any, state: str | None = None, fills: bool = False):
        self._pipeline, self._file, self._fills = pipeline, state, fills
        if len(getattr(pipeline, "fields", ())) > 1:
            raise ValueError(
                f"{pipeline.manifest.name}: a row must have its known rows beside it, which no "
                "line of a CSV file has; use seqkeras predict, or Stream.push in Python."
            )
        rows = getattr(pipeline, "rows", None)
        self._names = None if rows is None else rows.names
        self._series = None if rows is None else rows.series
        self._first = self._opened()
        series = self._first.state.memory.series
        self._streams = {} if series is None else {series: self._first}
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> "RowStreams":
        self._save()  # what can not be written is told before the first row
        for number in ENDS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
                self._ends.callback(signal.signal, number, signal.SIG_DFL)
        return self

    def __exit__(self, *error: object) -> None:
        with self._ends:
            self._save()

    def answers(self, texts: Iterable) -> Iterator[tuple[str | None, Any]]:
        """Yield (series, answer) for each row as it comes: the answer that its frame brings, None
        before the first; a ValueError stands for a row that is refused.

        Args:
            texts: as `serving.lines.lines` yields them.

        Raises:
            ValueError: if the first line does not name the columns that are read.
        """
        for where, row in _rows(texts, self._names):
            series = None
            try:
                if isinstance(row, ValueError):
                    raise row
                series = category_of(row.get(self._series)) if self._series else None
                yield series, self._pushed(series, row, where)
            except ValueError as error:
                yield series, error

    def _pushed(self, series, row, where):
        stream = self._stream_of(series, where)
        missing = stream.missing(row, where) if self._fills else []
        return stream.push([*missing, row], where)[-1]

    def _stream_of(self, series, where):
        if series not in self._streams:
            if self._streams and self._file:
                [known] = self._streams
                raise ValueError(
                    f"{where}: --state keeps the stream of one series, {known!r}; received "
                    f"{series!r}."
                )
            self._streams[series] = self._pipeline.open() if self._streams else self._first
        return self._streams[series]

    def _opened(self):
        path = self._file and Path(self._file)
        if not path or not path.exists():
            return self._pipeline.open()
        try:
            return self._pipeline.open(state=path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def _save(self):
        if self._file is not None:
            with written_aside(self._file) as file:
                file.write_bytes(bytes(self._first.state))


def _end(number, _):
    raise SystemExit(128 + number)


def _rows(texts, names):
    """Yield (name, row) of each line of a CSV file; a ValueError stands for a row that is none.

    Args:
        texts: as `serving.lines.lines` yields them. The first line names the columns; for frames of
            numbers it may be a frame.
        names: the columns of a row, which is a dictionary; None for frames of numbers.

    Raises:
        ValueError: if the first line lacks a column.
    """
    header = None
    for where, line in texts:
        try:
            cells = _cells(text_of(line, where).removeprefix("\ufeff"), where)
            if header is None:
                _require_columns(cells, names or (), where)
                header = cells
                if names is not None or not any(map(_is_number, cells)):
                    continue
            if len(cells) != len(header):
                raise ValueError(
                    f"{where}: a row must have {len(header)} cells, as the first line; received "
                    f"{len(cells)}."
                )
            yield where, dict(zip(header, cells)) if names else _numbers(cells, where)
        except ValueError as error:
            if header is None:
                raise
            yield where, error


def _cells(text, where):
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise ValueError(f"{where}: a row must be a line of a CSV file: {error}.") from error


def _require_columns(header, names, where):
    if missing := [name for name in names if name not in header]:
        raise ValueError(
            f"{where}: the first line must name the columns {', '.join(names)}; it has no "
            f"{missing[0]!r}: {', '.join(header)}."
        )


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python reads, and no other host


def _numbers(cells, where):
    for cell in cells:
        if not _is_number(cell):
            raise ValueError(
                f"{where}: a frame must be numbers with commas between them; received {cell!r}."
            )
    return [*map(float, cells)]

"""Files of JSON lines: an object a line; empty lines are passed over."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seqkeras.data.texts import DataError
from seqkeras.serving.parsing import parse_json


def json_objects(path: Path | str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of the line, dictionary) of a file's lines.

    Args:
        path: path of the file, for errors.
        lines: its lines, of `seqkeras.data.texts.read_lines`.

    Raises:
        DataError: if a line is not a JSON object; it names the line.
    """
    for line, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        try:
            row = parse_json(content.rstrip("\r\n"))
        except json.JSONDecodeError as error:  # its own line is always 1
            raise DataError(
                f"{path}, line {line}: not JSON: {error.msg}: column {error.colno}."
            ) from error
        except ValueError as error:
            raise DataError(f"{path}, line {line}: not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {line}: expected a JSON object, one a line.")
        yield line, row

"""Files that are written whole or not at all, and JSON that others may have written."""

import json
from pathlib import Path

from seqkeras.serving.parsing import parse_json
from seqkeras.serving.replacing import aside as aside
from seqkeras.serving.replacing import written_aside


def write_json(path, content):
    """Write JSON, one field a line, whole or not at all."""
    with written_aside(path) as written:
        text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=False)
        written.write_text(text + "\n", encoding="utf-8")


def read_json(path):
    """Return the value in a JSON file.

    Raises:
        ValueError: with the reason, if the file is not JSON in UTF-8 or nests too deep.
        OSError: if it can not be read.
    """
    return parse_json(Path(path).read_text(encoding="utf-8"))

"""Files that are written whole or not at all."""

import contextlib
import json
from pathlib import Path


@contextlib.contextmanager
def written_aside(path):
    """A path to write to; it takes the place of `path` when the block ends without an error."""
    path = Path(path)
    aside = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_json(path, content):
    """Write JSON, one field a line, whole or not at all."""
    with written_aside(path) as aside:
        text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=False)
        aside.write_text(text + "\n", encoding="utf-8")

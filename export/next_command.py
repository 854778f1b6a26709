"""The command that an export names at its end: the bundle's first answer."""

import shlex
from pathlib import Path

from seqkeras import files, serving
from seqkeras.export.card import EXAMPLES, command, pasted
from seqkeras.runs import ARRAYS, OPTIONS
from seqkeras.serving.lines import arguments, inputs
from seqkeras.serving.manifest import Manifest
from seqkeras.serving.row_streams import has_stream_of_rows

LAST = "last.csv"  # a file that the user makes


def next_command(bundle: Path | str, manifest: Manifest, run: Path) -> str:
    """Return a command line that runs as it stands, in the folder where the export ran.

    It names the .csv of a table that the run was trained on, where `predict` reads that, or
    `stream` of a bundle that has one; else an example, or, where that is too long to be pasted, the
    run's validation arrays, or all examples. The table of a training has no rows to come: where a
    bundle reads known columns of such rows, a comment says of what the user makes a file.
    """
    table = _table_of(run)
    is_short = bool(manifest.examples) and pasted(manifest.examples[0]) is not None
    paths = [path for path in (table, None if is_short else run / ARRAYS) if path is not None]
    pipeline = serving.load(bundle) if paths else None
    for file in paths:
        if _is_read(pipeline, str(file)):
            if file == table and has_stream_of_rows(pipeline):
                return f"seqkeras stream {shlex.quote(str(bundle))} < {shlex.quote(str(file))}"
            return shlex.join(["seqkeras", "predict", str(bundle), str(file), "--truncate"])
    if table is not None and (horizon := getattr(pipeline, "num_known_rows", 0)):
        rows = f"the last rows of {Path(table).name}, and {horizon} rows to come without targets"
        line = shlex.join(["seqkeras", "predict", str(bundle)])
        if manifest.examples:
            return f"{line} {EXAMPLES}  # or {LAST} --truncate: {rows}"
        return f"{line} {LAST} --truncate  # {LAST}: {rows}"
    if not manifest.examples:
        return shlex.join(["seqkeras", "inspect", str(bundle)])
    return command(bundle, manifest.examples)


def _table_of(run):
    """Return the .csv file that a run was trained on, or None."""
    try:
        file = files.read_json(run / OPTIONS).get("file")
    except (OSError, ValueError, AttributeError):  # of a model of one's own
        return None
    return file if isinstance(file, str) and file.endswith(".csv") else None


def _is_read(pipeline, file):
    """Return whether `predict` takes every input of a file."""
    rows = getattr(pipeline, "rows", None)
    if not getattr(pipeline, "reads_json", False) or (file.endswith(".csv") and rows is None):
        return False
    try:
        for _, value in inputs(pipeline, arguments([file])):
            pipeline.encode(value, truncate=True)
    except (OSError, ValueError):
        return False
    return True

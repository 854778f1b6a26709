"""The life of a run folder: new, begun, finished."""

import dataclasses
import json
import shutil
from pathlib import Path

from seqkeras import files
from seqkeras.runs import ATTENTION_MAP, CHECKPOINT, MODEL, RECORD, SCORES, VALIDATION, RunError

OPTIONS = "options.json"
# All that a run writes; a file that was being written when the run was killed begins with a dot.
WHOLE = (OPTIONS, CHECKPOINT, MODEL, RECORD, SCORES, VALIDATION, ATTENTION_MAP, "tokenizer")
PARTS = {*WHOLE, *(f"{Path(name).stem}.partial{Path(name).suffix}" for name in WHOLE)}


def open_run(folder, task, options, overwrite):
    """Make the folder, or find what is in it; whether it is finished.

    Args:
        folder: a `Path`.
        task: name of the task.
        options: the dataclass of options that decide the result.
        overwrite: remove what an earlier run left.

    Returns:
        True if the folder holds a finished run with the same options.

    Raises:
        RunError: if the folder holds another run, or something that is no run.
    """
    wanted = json.loads(json.dumps({"task": task, **dataclasses.asdict(options)}))
    path = folder / OPTIONS
    if folder.exists() and any(folder.iterdir()):
        if not path.is_file():
            raise RunError(
                f"{folder}: not empty, and not a run folder ({OPTIONS} is missing); "
                "choose another --out."
            )
        if not overwrite:
            _require_same(folder, _read_options(path), wanted)
            return (folder / RECORD).is_file()
        _clear(folder, path)
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(path, wanted)
    return False


def _clear(folder, path):
    """Remove a run, and nothing that is not part of one."""
    strangers = [each.name for each in folder.iterdir() if each.name.lstrip(".") not in PARTS]
    if strangers:
        raise RunError(
            f"{folder}: holds {strangers[0]!r}, which no run writes, so nothing is removed; "
            "choose another --out."
        )
    path.unlink()
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _read_options(path):
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise RunError(
            f"{path}: not the options of a run: {error}; replace the run with --overwrite."
        ) from None


def _require_same(folder, found, wanted):
    names = [name for name in wanted | found if found.get(name) != wanted.get(name)]
    if names:
        differences = ", ".join(
            f"{name} is {found.get(name)!r} there and {wanted.get(name)!r} here" for name in names
        )
        raise RunError(
            f"{folder}: holds a run with other options: {differences}; "
            "choose another --out, or replace it with --overwrite."
        )

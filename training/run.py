"""The life of a run folder: new, begun, finished."""

import dataclasses
import json
import shutil

from seqkeras import files
from seqkeras.runs import (
    ARRAYS,
    ATTENTION_MAP,
    CHECKPOINT,
    MODEL,
    OPTIONS,
    RECORD,
    ROLES,
    SCORES,
    VALIDATION,
    RunError,
)

TOKENIZER = "tokenizer"
# All that a run writes. The record goes first when a run is removed, so that a killed removal
# leaves no run that seems finished, and the options never: new ones take their place.
FILES = (RECORD, CHECKPOINT, MODEL, SCORES, VALIDATION, ARRAYS, ATTENTION_MAP)
TOKENIZER_FILES = tuple(f"{role}.json" for role in ROLES)


def open_run(folder, task, options, overwrite):
    """Make the folder, or find what is in it; whether it is finished.

    The caller holds the folder's lock (`seqkeras.locking`). A process that is killed at any moment
    leaves a folder that the same command opens.

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
    begun = folder.exists() and any(each.name != _aside(OPTIONS) for each in folder.iterdir())
    if begun:
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
    """Remove a run but for its options, and nothing that is not part of one."""
    if stranger := _stranger(folder):
        raise RunError(
            f"{folder}: holds {stranger!r}, which no run writes, so nothing is removed; "
            "choose another --out."
        )
    _read_options(path)
    for name in (*FILES, *map(_aside, (OPTIONS, *FILES))):
        (folder / name).unlink(missing_ok=True)
    if (folder / TOKENIZER).is_dir():
        shutil.rmtree(folder / TOKENIZER)


def _stranger(folder):
    """The first path in a folder that no run writes, or None; hidden ones too."""
    known = {*FILES, OPTIONS, *map(_aside, (OPTIONS, *FILES))}
    known |= {f"{TOKENIZER}/{name}" for name in TOKENIZER_FILES}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not path.is_symlink():
            if name != TOKENIZER:
                return name
        elif name not in known:
            return name
    return None


def _aside(name):
    """What a file is named while it is being written."""
    return files.aside(name).name


def _read_options(path):
    try:
        found, reason = files.read_json(path), "task is missing"
    except ValueError as error:
        found, reason = None, str(error)
    if not isinstance(found, dict) or "task" not in found:
        raise RunError(f"{path}: not the options of a run: {reason}; choose another --out.")
    return found


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

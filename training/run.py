"""The life of a run folder: new, begun, finished."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras import files
from seqkeras.runs import (
    ARRAYS,
    ATTENTION_MAP,
    CHECKPOINT,
    FORECASTS,
    MODEL,
    OPTIONS,
    RECORD,
    ROLES,
    SCORES,
    VALIDATION,
    RunError,
)
from seqkeras.tokenizers import read_tokenizer
from seqkeras.training.options import options_of

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions

TOKENIZER = "tokenizer"
BEST = "best.keras"  # only while the run is not finished
TEACHER = "teacher.npz"  # what a teacher answered; the same
HISTORY = "history.csv"
CURVES = "curves.png"
CALIBRATION = "calibration.png"
SAMPLES = "samples.txt"
TENSORBOARD = "tensorboard"
TASKS = "tasks"  # of several tasks: a run of each
MEMBERS = "members"  # of one task, from several seeds: a run of each
OF_RUN = re.compile(rf"^({TASKS}|{MEMBERS})/[^/]+(/|$)")
# All that a run writes. The record goes first when a run is removed, so that a killed removal
# leaves no run that seems finished, and the options never: new ones take their place.
WRITTEN = (MODEL, SCORES, VALIDATION, ARRAYS, ATTENTION_MAP, FORECASTS, HISTORY, CURVES, SAMPLES)
WRITTEN += (CALIBRATION,)
FILES = (RECORD, CHECKPOINT, BEST, TEACHER, *WRITTEN)
TOKENIZER_FILES = tuple(f"{role}.json" for role in ROLES)
EVENTS = "events.out.tfevents."  # begins the name of every file in `TENSORBOARD`


def is_finished(folder: Path, task: str, options: FitOptions, overwrite: bool) -> bool:
    """Return whether the folder holds a finished run with the same options; nothing is changed.

    Args: see `open_run`.

    Raises:
        RunError: if the folder holds another run, or something that is no run.
    """
    path = folder / OPTIONS
    if not _is_begun(folder):
        return False
    if not path.is_file():
        raise RunError(
            f"{folder}: not empty, and not a run folder ({OPTIONS} is missing); "
            "choose another --out."
        )
    if overwrite:
        _require_no_stranger(folder)
    recorded = _read_options(path)
    if not overwrite:
        _require_same(folder, recorded, options_content(task, options))
    return not overwrite and (folder / RECORD).is_file()


def open_run(folder: Path, task: str, options: FitOptions, overwrite: bool) -> None:
    """Make the folder of a new run, or leave the folder of the same run as it is.

    The caller holds the folder's lock (`seqkeras.locking`). A process that is killed at any moment
    leaves a folder that the same command opens.

    Args:
        folder: a `Path`.
        task: name of the task.
        options: the dataclass of options that decide the result.
        overwrite: remove what an earlier run left.

    Raises:
        RunError: if the folder holds another run, or something that is no run, or can not be
            written.
    """
    is_finished(folder, task, options, overwrite)  # refuses a folder of another run
    if _is_begun(folder):
        if not overwrite:
            return
        _clear(folder)
    content = options_content(task, options)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.write_json(folder / OPTIONS, content)
    except OSError as error:
        raise RunError(
            f"{folder}: can not be written ({error.strerror}); choose another --out."
        ) from error


def require_begun(folder: Path, task: str, options: FitOptions) -> None:
    """Raise a `RunError` unless the folder holds a run with the same options, as the chief's."""
    if not (folder / OPTIONS).is_file():
        raise RunError(f"{folder}: holds no run of the chief; all workers need the same folder.")
    is_finished(folder, task, options, False)


def kept_tokenizers(folder: Path, with_checkpoint: bool = True) -> dict[str, Tokenizer] | None:
    """Return the tokenizers of a run, role -> tokenizer.

    Args:
        folder: a `Path`, the run's.
        with_checkpoint: None unless there is a checkpoint, which was trained with them.

    Raises:
        RunError: if one of them is damaged.
    """
    if with_checkpoint and not (folder / CHECKPOINT).exists():
        return None
    tokenizers = {}
    for role in ROLES:
        path = folder / TOKENIZER / f"{role}.json"
        if path.exists():
            try:
                tokenizers[role] = read_tokenizer(path)
            except (OSError, ValueError) as error:
                raise RunError(
                    f"{path}: damaged ({error}); begin again with --overwrite."
                ) from error
    return tokenizers


def _is_begun(folder):
    return folder.exists() and any(path.name != _aside(OPTIONS) for path in folder.iterdir())


def options_content(task: str, options: FitOptions) -> dict[str, Any]:
    """Return the content of options.json: the task, its options, and the digests of the user's
    files."""
    content, digests = {"task": task}, {}
    for name, field in options_of(type(options)).items():
        if not field.metadata.get("decides", True):
            continue
        value = content[name] = getattr(options, name)
        kind = field.metadata.get("type")
        if value is None or not hasattr(kind, "read_file"):
            continue
        for path in map(kind.read_file, (value,) if isinstance(value, str) else value):
            with open(path, "rb") as file:
                digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
    within_files = getattr(options, "files_within", dict)()
    for path, within in within_files.items():
        digest = hashlib.sha256()
        for user_file in within:
            digest.update(hashlib.sha256(user_file.read_bytes()).digest())
        digests[f"the files of {path}"] = digest.hexdigest()
    return json.loads(json.dumps(content | ({"sha256": digests} if digests else {})))


def _clear(folder):
    """Remove a run but for its options."""
    for name in (*FILES, *map(_aside, (OPTIONS, *FILES))):
        (folder / name).unlink(missing_ok=True)
    for name in (TOKENIZER, TENSORBOARD, TASKS, MEMBERS):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)


def _require_no_stranger(folder):
    if stranger := _stranger(folder):
        raise RunError(
            f"{folder}: holds {stranger!r}, which no run writes, so nothing is removed; "
            "choose another --out."
        )


def _stranger(folder):
    """Return the first path in a folder that no run writes, or None; hidden ones too."""
    known = {*FILES, OPTIONS, *map(_aside, (OPTIONS, *FILES))}
    known |= {f"{TOKENIZER}/{name}" for name in (*TOKENIZER_FILES, *map(_aside, TOKENIZER_FILES))}
    for path in sorted(folder.rglob("*")):
        name = OF_RUN.sub("", path.relative_to(folder).as_posix())
        if path.is_dir() and not path.is_symlink():
            if name not in ("", TOKENIZER, TENSORBOARD, TASKS, MEMBERS):
                return path.relative_to(folder).as_posix()
        elif name not in known and not name.startswith(f"{TENSORBOARD}/{EVENTS}"):
            return path.relative_to(folder).as_posix()
    return None


def _aside(name):
    """Return what a file is named while it is being written."""
    return files.aside(name).name


def _read_options(path):
    try:
        recorded, reason = files.read_json(path), "task is missing"
    except ValueError as error:
        recorded, reason = None, str(error)
    if not isinstance(recorded, dict) or "task" not in recorded:
        raise RunError(f"{path}: not the options of a run: {reason}; choose another --out.")
    return recorded


def _require_same(folder, recorded, wanted):
    if recorded["task"] != wanted["task"]:
        raise RunError(
            f"{folder}: holds a run of {recorded['task']}; choose another --out, or replace it "
            "with --overwrite."
        )
    differing = {name for name in wanted | recorded if recorded.get(name) != wanted.get(name)}
    if differing == {"sha256"}:
        raise RunError(
            f"{folder}: began with another content of {' or '.join(wanted['sha256'])}; choose "
            "another --out, or replace the run with --overwrite."
        )
    names = [name for name in wanted | recorded if name in differing - {"sha256"}]
    if names:
        differences = ", ".join(
            f"{name} is {recorded.get(name)!r} there and {wanted.get(name)!r} here"
            for name in names
        )
        raise RunError(
            f"{folder}: holds a run with other options: {differences}; "
            "choose another --out, or replace it with --overwrite."
        )

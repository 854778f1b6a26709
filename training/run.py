"""The life of a run folder: new, begun, finished."""

import dataclasses
import json
import shutil

from seqkeras import files
from seqkeras.runs import RECORD, RunError

OPTIONS = "options.json"


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
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(path, wanted)
    return False


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

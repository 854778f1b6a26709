"""Folders of weights: JSON and safetensors, read lazily, written completely or not at all.

PyTorch's pickled files are not read, because a pickle can run any code.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from seqkeras import files
from seqkeras.folders import written_aside
from seqkeras.pretrained.assignment import Tensor

if TYPE_CHECKING:
    import numpy as np

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
DTYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def read_json(path: Path | str, kind: type = dict) -> Any:
    """Return the object that a JSON file holds, or the list if `kind` is list.

    Raises:
        ValueError: if the file is not there, is not JSON, or holds another kind of value.
    """
    try:
        content = files.read_json(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ValueError(f"{path}: must be there; found no such file.") from None
    except ValueError as error:
        raise ValueError(f"{path}: must be JSON; received {error}.") from None
    if not isinstance(content, kind):
        name = "an object" if kind is dict else "a list"
        raise ValueError(f"{path}: must hold {name} of JSON; received {content!r:.80}.")
    return content


def read_tensors(folder: Path | str) -> dict[str, Tensor]:
    """Return the tensors of `model.safetensors`, or of the files that its index names.

    Returns:
        A dictionary of `Tensor` by name; no numbers are read yet.

    Raises:
        ValueError: if there is no such file, or one is damaged.
    """
    folder = Path(folder)
    if (folder / WEIGHTS).exists():
        return _tensors_of(folder / WEIGHTS)
    if (folder / INDEX).exists():
        shards = _shards_of(folder / INDEX)
        return functools.reduce(dict.__or__, [_tensors_of(path) for path in shards])
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    raise ValueError(
        f"{folder}: must hold {WEIGHTS} or {INDEX}; found {pickled or 'neither'}."
        + (
            " Pickled weights are not read, as they may run any code; transformers turns them into "
            "safetensors: AutoModel.from_pretrained(folder).save_pretrained(other_folder)."
            if pickled
            else ""
        )
    )


def write_folder(
    folder: Path | str,
    config: Mapping[str, Any],
    arrays: dict[str, np.ndarray],
    others: Mapping[str, Any] | None = None,
) -> None:
    """Write config.json and model.safetensors to a new folder.

    Args:
        folder: a path; nothing is there, or an empty folder.
        config: fields of config.json.
        arrays: contiguous, by the names of the tensors.
        others: contents of more files, by path in the folder: bytes, or JSON content.

    Raises:
        ValueError: if the folder holds something, or another process writes it.
    """
    folder = Path(folder).absolute()
    with written_aside(folder, lambda: _require_empty(folder)) as aside:
        for name, content in {CONFIG: config, **(others or {})}.items():
            (aside / name).parent.mkdir(exist_ok=True)
            if isinstance(content, bytes):
                (aside / name).write_bytes(content)
            else:
                files.write_json(aside / name, content)
        # Others read from it which library the layout is of.
        save_file(arrays, aside / WEIGHTS, metadata={"format": "pt"})


def inside(folder: Path | str, name: str) -> Path:
    """Return the path of a file that another file of the folder names.

    Raises:
        ValueError: if it is outside of the folder.
    """
    parts = PureWindowsPath(name)  # handles both kinds of slashes, and drives
    if parts.anchor or ".." in parts.parts or "\0" in name:
        raise ValueError(f"{folder}: must name files of its own; received {name!r}.")
    return Path(folder) / name


def _shards_of(index):
    """Return the files that an index names."""
    places = read_json(index).get("weight_map")
    names = list(places.values()) if isinstance(places, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{index}: weight_map must be an object, the name of a file for each tensor; "
            f"received {places!r:.80}."
        )
    return [inside(index.parent, name) for name in sorted(set(names))]


def _tensors_of(path):
    try:
        with _opened(path) as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: Tensor(
                    tuple(entry.get_shape()),
                    DTYPES.get(entry.get_dtype(), entry.get_dtype()),
                    functools.partial(_read, path, name),
                )
                for name, entry in slices.items()
            }
    except FileNotFoundError:
        raise ValueError(f"{path}: must be there, as {INDEX} names it; found none.") from None
    except SafetensorError as error:
        raise ValueError(f"{path}: must be whole safetensors; received {error}.") from None


def _read(path, name):
    with _opened(path) as file:
        return file.get_tensor(name)


def _opened(path):
    # Mapped into memory instead, the file would be held a second time.
    return safe_open(path, framework="np", backend="pread")


def _require_empty(folder):
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(
            f"{folder}: must be a new folder, or an empty one; received one that holds something."
        )

"""The fields of a bundle's manifest that do not describe its files."""

from __future__ import annotations

import datetime
import importlib.metadata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import seqkeras
from seqkeras.export.families.decoders import reads_prefix
from seqkeras.serving.manifest import SCHEMA_VERSION
from seqkeras.serving.printing import as_content
from seqkeras.spreading import spread

if TYPE_CHECKING:
    from seqkeras.export.run import Run
    from seqkeras.serving.manifest import StateEntry

LIBRARIES = ("tensorflow", "keras", "tf2onnx", "onnx", "onnxruntime", "numpy")
MOST_SHOWN, MOST_NUMBERS = 64, 20_000  # inputs in a manifest, and the numbers that these hold


def about(run: Run, state: Sequence[StateEntry]) -> dict[str, Any]:
    """Return the fields of a `Run`, name -> value; state: `StateEntry`s of its model."""
    record = run.record
    return {
        "schema_version": SCHEMA_VERSION,
        "name": run.folder.name,
        "task": record.task,
        "pipeline": record.pipeline,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {
            "seqkeras": seqkeras.__version__,
            **{library: importlib.metadata.version(library) for library in LIBRARIES},
        },
        "tokenizers": record.tokenizers,
        "text_prefix": run.prefix,
        "limits": run.limits,
        "decoding": run.decoding,
        "state": state,
        "examples": _shown(run.inputs, [example.get("target") for example in run.examples]),
        "scores": run.scores,
        "parity": {},
        "settings": record.settings | ({"prefix": True} if reads_prefix(run.model) else {}),
    }


def _shown(inputs, targets):
    """Return inputs of all labels as JSON values; of arrays, as many as `MOST_NUMBERS` allows."""
    contents, room = [], MOST_NUMBERS
    for index in spread(targets)[:MOST_SHOWN]:
        value = inputs[index]
        parts = value.values() if isinstance(value, dict) else [value]
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        room -= sum(array.size for array in arrays)
        if room < 0:
            break
        contents.append(as_content(value) if arrays else value)
    return tuple(contents)

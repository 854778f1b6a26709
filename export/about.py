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
from seqkeras.serving.parsing import as_json
from seqkeras.serving.printing import as_content
from seqkeras.spreading import spread

if TYPE_CHECKING:
    from seqkeras.export.run import Run
    from seqkeras.serving.manifest import StateEntry

LIBRARIES = ("tensorflow", "keras", "tf2onnx", "onnx", "onnxruntime", "numpy")
MOST_SHOWN = 64  # inputs in a manifest, which a small device reads whole
MOST_BYTES, MOST_BYTES_OF_ONE = 20_000, 200_000  # of these inputs; of the first, which may be alone


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
    """Return inputs of all labels as JSON values, as many as `MOST_BYTES` allows."""
    contents, size = [], 0
    for index in spread(targets)[:MOST_SHOWN]:
        value = inputs[index]
        parts = value.values() if isinstance(value, dict) else [value]
        holds_arrays = any(isinstance(part, np.ndarray) for part in parts)
        content = as_content(value) if holds_arrays else value  # a tuple is a pair
        size += len(as_json(content).encode())
        if size > (MOST_BYTES if contents else MOST_BYTES_OF_ONE):
            break
        contents.append(content)
    return tuple(contents)

"""A bundle that is not finished, as the stages that prove it and write its requests read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

from seqkeras.serving.manifest import Manifest

ON_ARRAYS, ON_STRINGS = "saved_model/1", "saved_model_text/1"


class Exported:
    """A folder with its `Manifest`; each SavedModel is loaded once, and runs for all who ask it."""

    def __init__(self, folder: Path, manifest: Manifest):
        self.folder, self.manifest = folder, manifest
        self._loaded: dict[str, Any] = {}

    def signatures(self, path: str) -> dict[str, Any]:
        """Return the signatures of the SavedModel there by name; none if the bundle lacks it."""
        if path not in self.manifest.saved_models:
            return {}
        if path not in self._loaded:
            self._loaded[path] = tf.saved_model.load(str(self.folder / path))
        return self._loaded[path].signatures

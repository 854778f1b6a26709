"""A bundle that is not finished, as the stages that prove it and write its requests read it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from seqkeras.serving.manifest import Manifest

ON_ARRAYS, ON_STRINGS = "saved_model/1", "saved_model_text/1"


@contextlib.contextmanager
def without_optimizer() -> Iterator[None]:
    """Let functions that first run in this context run as they were traced: TensorFlow's optimizer
    takes longer than a few runs of a function, and it works anew for each signature."""
    option = "disable_meta_optimizer"
    before = tf.config.optimizer.get_experimental_options().get(option, False)
    tf.config.optimizer.set_experimental_options({option: True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({option: before})


class Loaded:
    """A signature of a SavedModel.

    Those that the proof runs are optimized, as a server optimizes them; those that run only later,
    for requests, are not.
    """

    def __init__(self, function: Any):
        self._function = function
        self.structured_input_signature = function.structured_input_signature
        self.is_proved = False

    def __call__(self, **given: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs by name."""
        self.is_proved = True
        return self._function(**given)

    def unless_proved(self, **given: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs by name, without the optimizer if the proof has not run it."""
        with contextlib.nullcontext() if self.is_proved else without_optimizer():
            return self._function(**given)


class Exported:
    """A folder with its `Manifest`; each SavedModel is loaded once, and runs for all who ask it."""

    def __init__(self, folder: Path, manifest: Manifest):
        self.folder, self.manifest = folder, manifest
        self._loaded: dict[str, Any] = {}

    def signatures(self, path: str) -> dict[str, Loaded]:
        """Return the signatures of the SavedModel there by name; none if the bundle lacks it."""
        if path not in self.manifest.saved_models:
            return {}
        if path not in self._loaded:
            model = tf.saved_model.load(str(self.folder / path))
            functions = {name: Loaded(function) for name, function in model.signatures.items()}
            self._loaded[path] = model, functions  # the functions do not keep the model's weights
        return self._loaded[path][1]

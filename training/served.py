"""The language model of a bundle in the place of Keras's, to score a text by onnxruntime."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seqkeras.runs import RunFiles, RunRecord
from seqkeras.serving.decoding import LOGITS
from seqkeras.serving.manifest import Manifest
from seqkeras.serving.opening import Runtime
from seqkeras.serving.session import CACHE_LENGTH, STEP, LanguageModel
from seqkeras.tokenizers import read_tokenizer


class ServedModel:
    """Reads texts token by token, with the state that the bundle's graph passes on.

    Args:
        folder: folder of the bundle, a `Path`.
        manifest: its `Manifest`.
        precision: precision of the graph; None for float32.

    Attributes:
        vocab_size: V.
        max_length: the most tokens of a text, of a model that has a cache for them; others have no
            such attribute.
    """

    def __init__(self, folder: Path, manifest: Manifest, precision: str | None = None):
        runtime = Runtime() if precision is None else Runtime(precision=precision)
        self._graphs = LanguageModel(folder, manifest, runtime)
        self.vocab_size = self._graphs.vocab_size
        if any(CACHE_LENGTH in spec.shape for spec in runtime.graphs_of(manifest)[STEP].inputs):
            self.max_length = manifest.limits.target_length

    def initial_state(self, batch_size: int) -> Any:
        return self._graphs.begin(batch_size)

    def read(self, token_ids: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        """Map (B, T) tokens to (B, T, V) logits, and the state behind them."""
        row_numbers, logits = np.arange(len(token_ids))[:, np.newaxis], []
        for column in np.asarray(token_ids, "int64").T:
            given, state = self._graphs.step(
                column[:, np.newaxis], row_numbers, 1, state, frozenset({LOGITS})
            )
            logits.append(given.logits.reshape(len(row_numbers), -1))
        return np.stack(logits, axis=1), state

    def __call__(self, inputs: Mapping[str, Any], training: bool = False) -> Any:
        logits, _ = self.read(inputs["token_ids"], self.initial_state(len(inputs["token_ids"])))
        return logits


def served(
    folder: Path, manifest: Manifest, precision: str | None = None
) -> tuple[ServedModel, RunFiles]:
    """Return the model of a bundle that generates, and the `RunFiles` that stand for its run.

    Args: see `ServedModel`.
    """
    record = RunRecord(
        manifest.task,
        manifest.pipeline,
        dataclasses.asdict(manifest.limits),
        dataclasses.asdict(manifest.decoding),
        None,
        manifest.tokenizers,
        manifest.settings,
        None,
    )
    tokenizers = {role: read_tokenizer(folder / path) for role, path in manifest.tokenizers.items()}
    return ServedModel(folder, manifest, precision), RunFiles(record, tokenizers, [], {})

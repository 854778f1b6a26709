"""Losses and accuracies of pre-training, over rows with fixed masks."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from seqkeras.data.masking import IGNORED
from seqkeras.training.compiling import OncePerModel

BASELINES = {"masked": "most_frequent_token", "next": "majority", "token": "most_frequent_token"}


class MaskedValidation:
    """Model -> losses and accuracies of its heads, or of its only output by the target's name.

    Args:
        examples: of which the batches are made.
        batches: a list of (inputs, targets by name), as from `PretrainingBatches`.

    Attributes:
        baselines: the accuracies of always the same answer, the most frequent among these targets.
    """

    def __init__(self, examples: Any, batches: Any):
        self.examples, self.batches = examples, batches
        self.sums = OncePerModel(_sums_of)
        self.baselines = {}
        for name in batches[0][1]:
            targets = np.concatenate([batch[name].ravel() for _, batch in batches])
            self.baselines[BASELINES[name]] = most_frequent(targets[targets != IGNORED].tolist())

    def __call__(self, model: keras.Model) -> Any:
        sums = self.sums(model)
        totals: Any = sum(np.array(sums(*batch), "float64") for batch in self.batches)
        scores = {"validation_loss": 0.0}
        for name, (loss, right, count) in zip(self.batches[0][1], totals, strict=True):
            scores[f"validation_{name}_loss"] = loss / count
            scores[f"validation_{name}_accuracy"] = right / count
            scores["validation_loss"] += loss / count
        return {name: float(value) for name, value in scores.items()}


def _sums_of(model):
    """Return (outputs, 3) sums: the losses, how many are right, how many count."""

    def sums(inputs, targets):
        logits, batch_sums = model(inputs, training=False), []
        if not isinstance(logits, dict):
            logits = dict.fromkeys(targets, logits)
        for name, wanted in targets.items():
            counts = ops.not_equal(wanted, IGNORED)
            target_ids = ops.maximum(wanted, 0)
            log_probs = ops.log_softmax(logits[name])
            chosen = ops.take_along_axis(log_probs, target_ids[..., None], axis=-1)[..., 0]
            right = ops.equal(ops.argmax(logits[name], axis=-1), ops.cast(target_ids, "int32"))
            parts = (-ops.where(counts, chosen, 0.0), ops.logical_and(right, counts), counts)
            batch_sums.append(ops.stack([ops.sum(ops.cast(part, "float32")) for part in parts]))
        return ops.stack(batch_sums)

    return sums


def most_frequent(targets: Sequence[Any]) -> float:
    """Return the share of the most frequent of targets."""
    return Counter(targets).most_common(1)[0][1] / len(targets)

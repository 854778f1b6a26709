"""The searches of graphs: what the manifest's `decoding` describes, n best, and sampling."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from seqkeras.decoding import Constraint, Search
from seqkeras.decoding.beam import beam_search
from seqkeras.decoding.loop import OneSequence
from seqkeras.decoding.processors import nucleus
from seqkeras.decoding.sampling import inverse_cdf
from seqkeras.serving.manifest import DecodingDefaults, TensorSpec
from seqkeras.tensors import Tensor

N_BEST, SAMPLE = "n_best", "sample"
NAMES = ("generated_ids", "generated_lengths", "scores")  # of a search's results
DRAWN = {  # how a row is sampled: name -> dtype and default
    "temperature": ("float32", 1.0),
    "top_k": ("int32", 0),
    "top_p": ("float32", 1.0),
    "seed": ("int64", 0),
}
DRAWN_SPECS = [TensorSpec(name, dtype, ("batch",)) for name, (dtype, _) in DRAWN.items()]


@dataclasses.dataclass(frozen=True)
class Generation:
    """The generation of a SavedModel: its limits, its default search, and further signatures."""

    max_length: int | None = None  # tokens of a result; of a prompt and what follows together
    decoding: DecodingDefaults = DecodingDefaults()
    constraint: Constraint | None = None  # of what is generated
    n_best: int = 0  # results of `n_best` for an input, by as many beams at least; 0 for none
    sampling: bool = False  # whether there is `sample`

    def several(self, max_length: int) -> Search:
        """Return the `seqkeras.decoding.Search` of `n_best`."""
        beams = max(self.n_best, self.decoding.num_beams)
        decoding = dataclasses.replace(self.decoding, num_beams=beams)
        return search_of(decoding, max_length, self.n_best)


def search_of(decoding: DecodingDefaults, max_length: int, n_best: int = 1) -> Search:
    """Return the `seqkeras.decoding.Search` that the manifest's `DecodingDefaults` ask for."""
    if decoding.num_beams == 1:
        # Keras's own arg-max, of the first of equal ones, uses an operator that ONNX lacks.
        return OneSequence(lambda log_probs, _: ops.top_k(log_probs, 1)[1][:, 0], decoding.end_id)
    return beam_search(
        num_beams=decoding.num_beams,
        n_best=n_best,
        max_length=max_length,
        end_id=decoding.end_id,
        length_penalty=decoding.length_penalty,
    )


def best_of(results: Any) -> dict[str, Tensor]:
    """Return a search's results by name; of several hypotheses, the best."""
    several = len(results[-1].shape) > 1
    return {name: result[:, 0] if several else result for name, result in all_of(results).items()}


def all_of(results: Any) -> dict[str, Tensor]:
    """Return a search's results by name."""
    return dict(zip(NAMES, results, strict=True))


def result_specs(max_length: int, *several: Any) -> list[TensorSpec]:
    """Return the `TensorSpec`s of what `best_of` returns, or `all_of` with `several` hypotheses."""
    shapes = ("batch", *several, max_length), ("batch", *several), ("batch", *several)
    return [
        TensorSpec(name, dtype, shape)
        for name, dtype, shape in zip(NAMES, ("int32", "int32", "float32"), shapes, strict=True)
    ]


class Sampled(OneSequence):
    """Tokens drawn at random, each row by its options, like `seqkeras.decoding.sample`.

    The numbers that decide are drawn before the first step, from each row's seed: a row has the
    same result in any batch.

    Args:
        temperature: (B,) float32, above 0.
        top_k: (B,) int32; 0 for all tokens.
        top_p: (B,) float32, above 0 and at most 1.
        seed: (B,) int64.
    """

    def __init__(
        self,
        temperature: Tensor,
        top_k: Tensor,
        top_p: Tensor,
        seed: Tensor,
        max_length: int,
        end_id: int,
    ):
        super().__init__(None, end_id)
        self._options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        self._seed, self._max_length = seed, max_length

    def begin(self, batch_size: Any) -> dict[str, Tensor]:
        uniform = tf.map_fn(
            lambda seed: tf.random.stateless_uniform([self._max_length], [seed, 0 * seed]),
            self._seed,
            fn_output_signature=tf.float32,
        )
        return super().begin(batch_size) | self._options | {"uniform": uniform}

    def extend(
        self, log_probs: Tensor, others: Sequence[Tensor], prefix: Any, progress: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor | None, dict[str, Tensor]]:
        drawing = {name: progress[name] for name in (*self._options, "uniform")}
        log_probs = _drawn_from(log_probs[:, 0], drawing)
        drawn = inverse_cdf(log_probs, ops.take(drawing["uniform"], prefix.length, axis=1))
        one = OneSequence(lambda *_: drawn, self.end_id)
        token, beams, after = one.extend(log_probs[:, None], others, prefix, progress)
        return token, beams, after | drawing


def _drawn_from(log_probs, drawing):
    """Return (B, V) log-probabilities after each row's temperature, top k and nucleus.

    Together they are as probable as before: under a constraint less than 1.
    """
    total = ops.logsumexp(log_probs, axis=-1, keepdims=True)
    logits = log_probs / drawing["temperature"][:, None]
    best = ops.flip(ops.sort(logits, axis=-1), axis=-1)
    size = logits.shape[-1]
    k = ops.where(drawing["top_k"] > 0, ops.minimum(drawing["top_k"], size), size)
    least = ops.take_along_axis(best, k[:, None] - 1, axis=-1)
    logits = ops.where(logits >= least, logits, -np.inf)
    p = drawing["top_p"][:, None]
    return ops.log_softmax(ops.where(p == 1, logits, nucleus(logits, p))) + total


def demands_of(
    temperature: Tensor, top_k: Tensor, top_p: Tensor, seed: Tensor
) -> list[tuple[Tensor, str]]:
    """Return (conditions of rows, what they demand) of the options of `sample`."""
    above = "must be above 0"
    return [
        ((temperature > 0) & tf.math.is_finite(temperature), f"temperature: {above} and finite."),
        (top_k >= 0, "top_k: must be 0, which keeps all, or more."),
        ((top_p > 0) & (top_p <= 1), f"top_p: {above}, and at most 1."),
    ]

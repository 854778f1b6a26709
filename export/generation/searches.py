"""The searches of a SavedModel beside the default one: n best results, and sampling."""

import dataclasses

import numpy as np
import tensorflow as tf
from keras import ops

from seqkeras.decoding.loop import OneSequence
from seqkeras.decoding.processors import nucleus
from seqkeras.decoding.sampling import inverse_cdf
from seqkeras.export.generation.default_search import search_of
from seqkeras.serving.manifest import TensorSpec

N_BEST, SAMPLE = "n_best", "sample"
DRAWN = {  # how a row is sampled: name -> dtype and default
    "temperature": ("float32", 1.0),
    "top_k": ("int32", 0),
    "top_p": ("float32", 1.0),
    "seed": ("int64", 0),
}
DRAWN_SPECS = [TensorSpec(name, dtype, ("batch",)) for name, (dtype, _) in DRAWN.items()]


@dataclasses.dataclass(frozen=True)
class Searches:
    """Which signatures of generation there are beside that of the default search."""

    n_best: int = 0  # results of `n_best` for an input, by as many beams at least; 0 for none
    sampling: bool = False  # whether there is `sample`

    def several(self, decoding, max_length):
        """Return the `seqkeras.decoding.Search` of `n_best`, by the manifest's `decoding`."""
        beams = max(self.n_best, decoding.num_beams)
        return search_of(dataclasses.replace(decoding, num_beams=beams), max_length, self.n_best)


DEFAULT_ONLY = Searches()


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

    def __init__(self, temperature, top_k, top_p, seed, max_length, end_id):
        super().__init__(None, end_id)
        self._options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        self._seed, self._max_length = seed, max_length

    def begin(self, batch_size):
        uniform = tf.map_fn(
            lambda seed: tf.random.stateless_uniform([self._max_length], [seed, 0 * seed]),
            self._seed,
            fn_output_signature=tf.float32,
        )
        return super().begin(batch_size) | self._options | {"uniform": uniform}

    def extend(self, log_probs, others, prefix, found):
        given = {name: found[name] for name in (*self._options, "uniform")}
        log_probs = _drawn_from(log_probs[:, 0], given)
        drawn = inverse_cdf(log_probs, ops.take(given["uniform"], prefix.length, axis=1))
        one = OneSequence(lambda own, position: drawn, self.end_id)
        token, beams, after = one.extend(log_probs[:, None], others, prefix, found)
        return token, beams, after | given


def _drawn_from(log_probs, given):
    """Return (B, V) log-probabilities after each row's temperature, top k and nucleus.

    Together they are as probable as before: under a constraint less than 1.
    """
    total = ops.logsumexp(log_probs, axis=-1, keepdims=True)
    logits = log_probs / given["temperature"][:, None]
    best = ops.flip(ops.sort(logits, axis=-1), axis=-1)
    size = logits.shape[-1]
    k = ops.where(given["top_k"] > 0, ops.minimum(given["top_k"], size), size)
    least = ops.take_along_axis(best, k[:, None] - 1, axis=-1)
    logits = ops.where(logits >= least, logits, -np.inf)
    p = given["top_p"][:, None]
    return ops.log_softmax(ops.where(p == 1, logits, nucleus(logits, p))) + total


def demands_of(temperature, top_k, top_p, seed):
    """Return (conditions of rows, what they demand) of the options of `sample`."""
    above = "must be above 0"
    return [
        ((temperature > 0) & tf.math.is_finite(temperature), f"temperature: {above} and finite."),
        (top_k >= 0, "top_k: must be 0, which keeps all, or more."),
        ((top_p > 0) & (top_p <= 1), f"top_p: {above}, and at most 1."),
    ]

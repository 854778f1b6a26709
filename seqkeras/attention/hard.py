"""Hard attention: one position for each query, and REINFORCE to train its choice."""

import keras
from keras import ops

from seqkeras.attention.attention import ScoreAttention
from seqkeras.attention.scores import Score
from seqkeras.masks import mask_scores, masked_softmax
from seqkeras.shapes import fits, require_steps
from seqkeras.tensors import Tensor

TINY = 1e-30  # avoids log 0


@keras.saving.register_keras_serializable("seqkeras")
class HardAttention(ScoreAttention):
    """Each query attends to a single position.

        training    s ~ Categorical(softmax(score(query, key))), drawn as
                    s = argmax over s of score(query, key) + g,  g = -log(-log u),  u uniform
        inference   s = argmax over s of score(query, key)
        context     value(s)

    No gradient reaches the score through the choice. To train it, add the gradient of the expected
    loss by REINFORCE: `reinforce_loss` of each row's loss and the `log_probability` of its choices,
    in a model's `compute_loss`. The paper also replaces the sample by its expectation, the weights
    of soft attention, with probability 1/2 for each image; this layer always samples.

    Args:
        score: a layer of `seqkeras.attention.scores`.
        seed: seed of the samples; None for a random one in each process.

    Call arguments:
        query: (B, T, Q), T queries at once.
        key: (B, S, K).
        value: (B, S, D); it and the key may hold anything where no query may attend.
        attention_mask: (B or 1, T or 1, S) booleans, True = may attend, or None.
        training: whether to sample.
        query_mask, key_mask, value_mask: (B, T), (B, S) and (B, S) booleans, True for real steps,
            or None. Keras fills them in where a tensor carries a mask along, as one after
            `Embedding(mask_zero=True)` does, and passes the query's on.

    Returns:
        context (B, T, D) and weights (B, T, S), one of them one and the others zero; all are zero
        where a query may attend to nothing or is masked.

    Raises:
        ValueError: if score is not a score, query, key or value is not of rank 3, a mask is not of
            the shape above, or there is no key.

    Reference: Xu et al. 2015, section 4.1, https://arxiv.org/abs/1502.03044; the draw: Maddison et
    al. 2014, section 2, https://arxiv.org/abs/1411.0030

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import DotScore, HardAttention
        >>> query, key = np.array([[[1.0]]]), np.array([[[0.0], [5.0], [1.0]]])
        >>> context, weights = HardAttention(DotScore())(query, key, 10 * key)
        >>> float(context[0, 0, 0]), ops.convert_to_numpy(weights).tolist()
        (50.0, [[[0.0, 1.0, 0.0]]])
    """

    def __init__(self, score: Score, seed: int | None = None, **kwargs):
        super().__init__(score, **kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=False,
        query_mask=None,
        key_mask=None,
        value_mask=None,
    ):
        masks = attention_mask, query_mask, key_mask, value_mask
        return self._attend_to_real(query, key, value, masks, training=training)

    def attend(self, query, prepared_key, value, attention_mask=None, training=False, noise=None):
        """Attend to a key that `score.prepare` has seen already.

        With `noise`, (B, T, S) of `draw_noise`, positions are sampled by it: a step of a loop takes
        its part of what was drawn before.
        """
        require_steps(self, key=prepared_key)
        attention_mask = self._checked(attention_mask)
        scores = mask_scores(self.score.compare(query, prepared_key), attention_mask)
        if training and noise is None:
            noise = self.draw_noise(ops.shape(scores))
        if noise is not None:
            scores = scores + ops.cast(noise, scores.dtype)
        _, position = ops.top_k(scores, k=1)  # (B, T, 1); Keras's argmax has no ONNX operator
        source = ops.cast(ops.arange(ops.shape(scores)[-1]), position.dtype)
        chosen = position == source  # (B, T, S)
        if attention_mask is not None:
            chosen = ops.logical_and(chosen, attention_mask)
        weights = ops.cast(chosen, value.dtype)
        return ops.matmul(weights, value), weights

    def draw_noise(self, shape):
        """Return g of the formula, one for each score (B, T, S)."""
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        u = keras.random.uniform(shape, minval=TINY, dtype=dtype, seed=self.seed_generator)
        return -ops.log(-ops.log(u))

    def log_probability(self, query, key, weights, attention_mask=None):
        """Return (B, T) log-probabilities of choices; zero where a query may attend to nothing.

        Args:
            query, key, attention_mask: as in the call.
            weights: (B, T, S), as the call returned them.
        """
        scores, _ = self._masked_scores(query, key, attention_mask)
        weights = ops.stop_gradient(ops.cast(weights, scores.dtype))
        return ops.sum(weights * ops.log_softmax(scores, axis=-1), axis=-1)

    def entropy(self, query, key, attention_mask=None):
        """Return (B, T) entropies of the choices, a regularizer against early convergence."""
        scores, attention_mask = self._masked_scores(query, key, attention_mask)
        probabilities = masked_softmax(scores, attention_mask)
        return -ops.sum(probabilities * ops.log_softmax(scores, axis=-1), axis=-1)

    def _masked_scores(self, query, key, attention_mask):
        attention_mask = self._checked(attention_mask)
        (key,) = self._real(attention_mask, key)
        return mask_scores(self.score(query, key), attention_mask), attention_mask

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}


@keras.saving.register_keras_serializable("seqkeras")
class MovingAverageBaseline(keras.layers.Layer):
    """The expected loss, a moving average of previous losses: the baseline of REINFORCE.

        b <- momentum b + (1 - momentum) mean(losses), in training, after the call

    Notation: the paper averages log-likelihoods; ours are losses, with the other sign.

    Args:
        momentum: the share of the average that each step keeps.

    Call arguments:
        losses: (B,), or of any shape.
        training: whether to update the average.

    Returns:
        b, repeated to the shape of the losses.

    Raises:
        ValueError: if the momentum is not in [0, 1).

    Reference: Xu et al. 2015, section 4.1, https://arxiv.org/abs/1502.03044

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import MovingAverageBaseline
        >>> baseline = MovingAverageBaseline(momentum=0.5)
        >>> [float(baseline(np.array([8.0]), training=True)[0]) for _ in range(3)]
        [0.0, 4.0, 6.0]
    """

    def __init__(self, momentum: float = 0.9, **kwargs):
        super().__init__(autocast=False, **kwargs)
        if not 0 <= momentum < 1:
            raise ValueError(
                f"MovingAverageBaseline: momentum must be in [0, 1); received {momentum}."
            )
        self.momentum = momentum

    def build(self, losses_shape):
        self.average = self.add_weight(
            name="average",
            shape=(),
            initializer="zeros",
            trainable=False,
            aggregation="mean",
        )

    def call(self, losses, training=False):
        losses = ops.cast(ops.stop_gradient(losses), self.average.dtype)
        baseline = self.average * ops.ones_like(losses)
        if training:
            mean = ops.mean(losses)
            self.average.assign(self.momentum * self.average + (1 - self.momentum) * mean)
        return baseline


def reinforce_loss(
    losses: Tensor,
    log_probabilities: Tensor,
    baseline: float | Tensor = 0.0,
    entropies: float | Tensor = 0.0,
) -> Tensor:
    """Return a number whose gradient is the expected loss's, estimated from samples.

        d = dL + (L - b) d log p - dH, averaged over the rows

    Notation: L is the paper's -log p(y | s, a), so its reward minus baseline is our -(L - b); H is
    its entropy, with its weight lambda_e. The number itself is no loss: look at `losses`.

    Left out of the paper's section 4.1: the weight lambda_r on the reward term, (L - b) d log p,
    which is 1 here; and the sample replaced by its expectation with probability 1/2.

    Args:
        losses: (B,) L, the loss of each row with the positions that were sampled.
        log_probabilities: (B,) log p of these positions, summed over the row's queries.
        baseline: b, a number or (B,), that does not depend on what was sampled.
        entropies: lambda_e H of the distributions, (B,), or zero.

    Raises:
        ValueError: if losses and log-probabilities differ in shape: they would broadcast.

    Reference: Xu et al. 2015, section 4.1, https://arxiv.org/abs/1502.03044; Williams 1992,
    https://doi.org/10.1007/BF00992696

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import reinforce_loss
        >>> losses, log_probabilities = np.array([1.0, 3.0]), np.array([-1.0, -0.5])
        >>> float(reinforce_loss(losses, log_probabilities, baseline=2.0))  # (1 + 1 + 3 - 0.5) / 2
        2.25
    """
    losses, log_probabilities = map(ops.convert_to_tensor, (losses, log_probabilities))
    if not fits(losses.shape, log_probabilities.shape):
        raise ValueError(
            "reinforce_loss: losses and log_probabilities must have the same shape; received "
            f"{tuple(losses.shape)} and {tuple(log_probabilities.shape)}."
        )
    advantage = ops.stop_gradient(losses - baseline)
    return ops.mean(losses + advantage * log_probabilities - entropies)

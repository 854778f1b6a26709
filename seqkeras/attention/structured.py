"""Several learned queries over one sequence, whose contexts form one vector."""

import keras
from keras import ops

from seqkeras.masks import masked_softmax
from seqkeras.shapes import require_mask, require_positive, require_sequence, require_steps
from seqkeras.values import without_padding


@keras.saving.register_keras_serializable("seqkeras")
class StructuredSelfAttention(keras.layers.Layer):
    """Structured self-attention: R queries each summarise the sequence, one beside the other.

        A = softmax(W_2 tanh(W_1 H^T))        M = A H        output = [M(1); ...; M(R)]
        loss  = penalty ||A A^T - I||_F^2, the mean over the batch

    Each row of A is a "hop": a query that is learned, and does not depend on the sequence. The
    penalty keeps hops from attending to the same positions.

    Notation: H, A, M are the paper's; D is its 2u, R its r, units its d_a; W_1, W_2 its W_s1, W_s2.

    Args:
        units: size of the hidden layer that all hops share.
        num_hops: R.
        penalty: penalty of similar hops, the paper's penalisation coefficient.

    Call arguments:
        sequence: (B, S, D), H.
        mask: (B, S) booleans, True for real steps, or None.

    Returns:
        output (B, R D) and weights (B, R, S), A; both are zero where no step is real.

    Raises:
        ValueError: if units or num_hops is no positive integer, the penalty is under 0, the
            sequence is not of rank 3 or has no step, or the mask is of another shape.

    Reference: Lin et al. 2017, section 2, https://arxiv.org/abs/1703.03130

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import StructuredSelfAttention
        >>> layer = StructuredSelfAttention(units=6, num_hops=3, penalty=0.1)
        >>> output, weights = layer(np.ones((2, 5, 4)))
        >>> tuple(output.shape), tuple(weights.shape), len(layer.losses)
        ((2, 12), (2, 3, 5), 1)
    """

    def __init__(self, units: int, num_hops: int, penalty: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, units=units, num_hops=num_hops)
        if penalty < 0:
            raise ValueError(
                f"StructuredSelfAttention: penalty must be at least 0; received {penalty}."
            )
        self.units = units
        self.num_hops = num_hops
        self.penalty = penalty
        self.supports_masking = True

    def build(self, sequence_shape):
        require_sequence(self, sequence=sequence_shape)
        shape = (sequence_shape[-1], self.units)
        self.hidden_kernel = self.add_weight(name="hidden_kernel", shape=shape)  # W_1
        self.hop_kernel = self.add_weight(name="hop_kernel", shape=(self.units, self.num_hops))

    def call(self, sequence, mask=None):
        require_sequence(self, sequence=sequence.shape)
        require_steps(self, sequence=sequence)
        require_mask(self, mask, sequence.shape)
        (sequence,) = without_padding(mask, sequence)
        hidden = ops.tanh(ops.matmul(sequence, self.hidden_kernel))  # (B, S, units)
        scores = ops.transpose(ops.matmul(hidden, self.hop_kernel), (0, 2, 1))  # (B, R, S)
        weights = masked_softmax(scores, None if mask is None else mask[:, None])
        if self.penalty:
            self.add_loss(self.penalty * self.likeness(weights))
        summary = ops.matmul(weights, sequence)  # (B, R, D)
        shape = (ops.shape(summary)[0], self.num_hops * sequence.shape[-1])
        return ops.reshape(summary, shape), weights

    def likeness(self, weights):
        """Return ||A A^T - I||_F^2 of weights (B, R, S), the mean over the batch, in float32 at
        least."""
        weights = ops.cast(weights, keras.backend.result_type(weights.dtype, "float32"))
        products = ops.matmul(weights, ops.transpose(weights, (0, 2, 1)))  # (B, R, R)
        differences = ops.square(products - ops.eye(self.num_hops, dtype=weights.dtype))
        return ops.mean(ops.sum(differences, axis=(1, 2)))

    def compute_mask(self, sequence, mask=None):
        return None, None  # no steps are left

"""Classes, and none of them: what is far from all examples of the classes."""

import keras
from keras import ops

from seqkeras.models.found_weights import add_found_weight
from seqkeras.models.heads import ClassificationHead
from seqkeras.shapes import require_positive

SMALLEST = 1e-12  # square of a length
FITTED = (  # names of weights
    "none_projection",
    "none_examples",
    "none_slope",
    "none_threshold",
    "none_share",
)


@keras.saving.register_keras_serializable("seqkeras")
class OpenClassificationHead(ClassificationHead):
    """Classes of a sequence, and a last one for what is far from all examples of the classes.

        z = W dropout(x) + b + beside            K logits of the classes
        u(x) = P x / ||P x||
        distance = min over n of ||u(x) - u(x_n)||
        far = distance - share max over k of beside(k)
        z(K) = max over k of z(k) + slope (far - threshold)

    Notation: x is what is pooled, and x_n what was pooled of example n. The last class is the most
    probable where `far` is over the threshold; without `beside`, `far` is the distance. If it is
    learned, W and b give it a logit of its own, in place of the maximum. P, u(x_n), slope,
    threshold and share are not trained: `seqkeras.training` finds them after a training.

    Args:
        num_outputs: K, the number of classes, without the last one.
        num_examples: the number of examples.
        dim: size of u(x).
        learned: whether the last class has a logit of its own.
        dropout: dropout rate of what is pooled.

    Call arguments:
        pooled: (B, D).
        beside: logits that another classifier adds, (B, K), or (B, K + 1) where the last class is
            learned; or None.

    Returns:
        (B, K + 1) logits, in float32 at least.

    Raises:
        ValueError: if a size is not positive.

    Reference: Sun et al. 2022, section 3, https://arxiv.org/abs/2204.06507

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import OpenClassificationHead
        >>> head = OpenClassificationHead(num_outputs=3, num_examples=5, dim=4)
        >>> tuple(head(np.ones((2, 8))).shape)  # the last class: none of these
        (2, 4)
    """

    def __init__(
        self,
        num_outputs: int,
        num_examples: int,
        dim: int = 64,
        learned: bool = False,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(num_outputs + learned, dropout, **kwargs)
        require_positive(self, num_outputs=num_outputs, num_examples=num_examples, dim=dim)
        self.num_classes, self.num_examples, self.dim = num_outputs, num_examples, dim
        self.learned = learned

    def build(self, pooled_shape):
        super().build(pooled_shape)
        shapes = (pooled_shape[-1], self.dim), (self.dim, self.num_examples), (), (), ()
        self.projection, self.examples, self.slope, self.threshold, self.share = (
            add_found_weight(self, name, shape, self.output_layer.variable_dtype)
            for name, shape in zip(FITTED, shapes, strict=True)
        )

    def call(self, pooled, beside=None, training=False):
        logits = super().call(pooled, training)
        expected = 0.0
        if beside is not None:
            logits = logits + beside
            expected = ops.max(beside[:, : self.num_classes], axis=-1, keepdims=True)
        classes = logits[:, : self.num_classes]
        projected = ops.matmul(ops.cast(pooled, logits.dtype), self.projection)  # (B, dim)
        squared = ops.sum(ops.square(projected), axis=-1, keepdims=True)
        unit = projected * ops.rsqrt(ops.maximum(squared, SMALLEST))
        nearest = ops.argmax(ops.matmul(unit, self.examples), axis=-1)  # (B,)
        # The difference itself: 2 - 2 cosine would lose its digits where they are near.
        off = unit - ops.transpose(ops.take(self.examples, nearest, axis=1))  # (B, dim)
        squared = ops.sum(ops.square(off), axis=-1, keepdims=True)
        distance = ops.sqrt(ops.maximum(squared, SMALLEST))  # (B, 1)
        learned = logits[:, self.num_classes :]
        none = learned if self.learned else ops.max(classes, axis=-1, keepdims=True)
        far = distance - self.share * expected
        return ops.concatenate([classes, none + self.slope * (far - self.threshold)], axis=-1)

"""One layer of an encoder as an output, for a student to match its teacher's."""

import keras
from keras import ops

from seqkeras.models.heads import Head
from seqkeras.shapes import require_counts, require_positive
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class HiddenStateHead(Head):
    """The hidden states of one layer, which a student maps to its teacher's width.

        y(t) = h_l(t), or W h_l(t) + b

    Teacher and student have a head of one name for each pair of layers, and `HiddenStateLoss`:

        teacher = WithHeads(bert, {"low": HiddenStateHead(2), "high": HiddenStateHead(4)})
        student = WithHeads(small, {"low": HiddenStateHead(1, D), "high": HiddenStateHead(2, D)})
        student.compile("adam", {"low": HiddenStateLoss(), "high": HiddenStateLoss()})
        student.fit(inputs, teacher.predict(inputs))

    Notation: l is the paper's m for the student and n = g(m) for the teacher, W its W_h, or W_e for
    l = 0. Each head has a separate W; the paper has one W for all layers, without b.

    Args:
        layer: l, from 0, what enters the first block, to the number of blocks.
        dim: the width that is made of it; None for the layer as it is.

    Call arguments:
        hidden_states: a list of (B, T, D), from `Bert.hidden_states`.

    Returns:
        (B, T, dim), in float32 at least; (B, T, D) without dim. No meaning at padded positions.

    Raises:
        ValueError: if layer is no integer, negative or beyond the last block, or dim is not
            positive.

    Reference: Jiao et al. 2020, "TinyBERT", section 3.1, equations 7 to 9,
    https://arxiv.org/abs/1909.10351

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, HiddenStateHead, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> heads = {"low": HiddenStateHead(0), "high": HiddenStateHead(1, dim=12)}
        >>> student = WithHeads(bert, heads)
        >>> outputs = student({"token_ids": np.array([[2, 5, 3]])})
        >>> {name: tuple(states.shape) for name, states in outputs.items()}
        {'low': (1, 3, 8), 'high': (1, 3, 12)}
    """

    takes = ("hidden_states",)

    def __init__(self, layer: int, dim: int | None = None, **kwargs):
        super().__init__(**kwargs)
        require_counts(self, layer=layer)
        if dim is not None:
            require_positive(self, dim=dim)
        self.layer = layer
        self.dim = dim
        self.output_layer = None if dim is None else self._dense(dim, "output")

    def build(self, hidden_states_shape):
        if self.output_layer is not None:
            build_once(self.output_layer, hidden_states_shape[0])

    def call(self, hidden_states, training=False):
        if self.layer >= len(hidden_states):
            raise ValueError(
                "HiddenStateHead: layer must be at most the number of blocks, "
                f"{len(hidden_states) - 1}; received {self.layer}."
            )
        hidden = hidden_states[self.layer]
        if self.output_layer is not None:
            return self.output_layer(hidden)
        return ops.cast(hidden, keras.backend.result_type(hidden.dtype, "float32"))

"""An encoder and one head, or several."""

from collections.abc import Mapping

import keras
import numpy as np
from keras import ops, tree

from seqkeras.embeddings.ids import require_ids
from seqkeras.masks import padding_mask
from seqkeras.models.encoder_model import (
    ENCODER_INPUTS,
    EncoderModel,
    encoder_rows,
    mean_of_positions,
)
from seqkeras.models.heads import MaskedLMHead, MultipleChoiceHead
from seqkeras.models.partial_labels import PartialLabels
from seqkeras.values import build_once

OF_LAYERS = ("hidden_states", "attention")  # what an encoder returns if it is asked for
ENCODED = ("hidden", *OF_LAYERS, "pooled", "padding_mask")  # inputs of heads alone
POOLINGS = ("pooler", "mean")


@keras.saving.register_keras_serializable("seqkeras")
class WithHeads(PartialLabels, EncoderModel):
    """An encoder with one head, or with several that are trained together.

        outputs(name) = heads(name)(encoder(inputs))
        pooler: pooled = tanh(W hidden(1) + b), the encoder's own
        mean:   pooled = (hidden(1) + ... + hidden(n)) / n, over the real positions

    Notation: n is the length of the text.

    Args:
        encoder: a model that returns "hidden" (B, T, D) and, unless its `pooler` is None, "pooled"
            (B, D), such as `Bert`; called with hidden_states=True or attention=True,
            "hidden_states" or "attention" too, if a head takes them. The pooler is trained if a
            head takes what it gives.
        heads: a dictionary of heads by name, as {"classes": ClassificationHead(3)}.
        frozen: True for feature extraction, where the heads alone learn and the encoder runs
            without dropout; False for fine-tuning. It sets the encoder's `trainable`: with False an
            encoder that another model froze learns again. It may be changed later; then `compile`
            again.
        pooling: what heads take as "pooled", "pooler" or "mean". Sentence encoders, such as those
            of sentence-transformers, were trained for the mean.

    Call arguments (one dictionary):
        token_ids, lengths, segment_ids: inputs of the encoder; for multiple choice (B, C, T), (B,
            C), (B, C, T), each choice a separate sequence.
        masked_positions: (B, M) integers, with a `MaskedLMHead`; without them every position.

    Returns:
        A dictionary of the heads' outputs by name; `compile` takes losses by these names. A head
        without labels does not count in the loss and in `weighted_metrics`, nor does a row whose
        sample weight for the head is 0.

    Raises:
        ValueError: if there is no head, or one that takes what the encoder does not pool; if the
            encoder or a head is something else, or the pooling unknown; if the inputs are not those
            above; if there are labels of no head, or none at all.

    Reference: Devlin et al. 2019, sections 3.2, 4 and 5.3, https://arxiv.org/abs/1810.04805; mean:
    Reimers and Gurevych 2019, section 3, https://arxiv.org/abs/1908.10084

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, ClassificationHead, TaggingHead, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> heads = {"intent": ClassificationHead(3), "slots": TaggingHead(5)}
        >>> outputs = WithHeads(bert, heads)({"token_ids": np.array([[2, 5, 3]])})
        >>> {name: tuple(logits.shape) for name, logits in outputs.items()}
        {'intent': (1, 3), 'slots': (1, 3, 5)}
    """

    takes_choices = True

    def __init__(
        self,
        encoder: keras.Model,
        heads: Mapping[str, keras.layers.Layer],
        frozen: bool = False,
        pooling: str = "pooler",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_encoder(self, encoder)
        _require_heads(heads)
        if pooling not in POOLINGS:
            raise ValueError(f"WithHeads: pooling must be one of {POOLINGS}; received {pooling!r}.")
        unpooled = [name for name, head in heads.items() if "pooled" in head.takes]
        if unpooled and pooling == "pooler" and encoder.pooler is None:
            raise ValueError(
                f"WithHeads: the encoder must have a pooler for the heads {unpooled}; received one "
                'without. pooling="mean" needs none.'
            )
        self.encoder = encoder
        self.pooling = pooling
        self.heads = dict(heads)
        self._frozen = frozen
        for head in self.heads.values():
            if isinstance(head, MaskedLMHead):
                head.tie(encoder.embedding)

    @property
    def frozen(self):
        """Whether the encoder is frozen."""
        return self._frozen

    @frozen.setter
    def frozen(self, frozen):
        self._frozen = frozen
        if self.built:
            self._freeze()

    def _freeze(self):
        """Freeze or unfreeze the whole encoder."""
        if self.frozen or not self.encoder.trainable:
            # Twice, because Keras ignores an assignment of the current value.
            self.encoder.trainable = self.frozen
            self.encoder.trainable = not self.frozen

    @property
    def input_names(self):
        further = [name for name in self._taken() if name not in ENCODED + ENCODER_INPUTS]
        return ENCODER_INPUTS[:1], [*ENCODER_INPUTS[1:], *further]

    @property
    def pools(self):
        return self.pooling == "pooler" and "pooled" in self._taken()

    def check_ids(self, inputs):
        super().check_ids(inputs)
        token_ids, positions = inputs.get("token_ids"), inputs.get("masked_positions")
        if hasattr(positions, "dtype") and token_ids is not None:
            length = np.shape(token_ids)[-1]
            require_ids(self, "masked_positions", positions, "the length", length)

    def build(self, inputs_shape=None):
        build_once(self.encoder, inputs_shape)
        self._freeze()  # not earlier, or layers that are built later would learn
        dim = self.encoder.hidden_dim
        choices = any(isinstance(head, MultipleChoiceHead) for head in self.heads.values())
        if isinstance(inputs_shape, dict) and "token_ids" in inputs_shape:
            choices = len(inputs_shape["token_ids"]) == 3
        sequence = (None, None, None, dim) if choices else (None, None, dim)
        shapes = {
            "hidden": sequence,
            "hidden_states": [sequence],
            "attention": [(*sequence[:-2], None, None, None)],
            "pooled": (None, None, dim) if choices else (None, dim),
        }
        for head in self.heads.values():
            build_once(head, *(shapes[name] for name in head.takes if name in shapes))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        known = {**inputs, **self._encode(inputs, training)}
        return {
            name: head(
                **{input_name: known.get(input_name) for input_name in head.takes},
                training=training,
            )
            for name, head in self.heads.items()
        }

    def _encode(self, inputs, training):
        choices = len(inputs["token_ids"].shape) == 3
        taken = self._taken()
        rows = encoder_rows(inputs)
        options = {name: True for name in OF_LAYERS if name in taken}
        outputs = self.encoder(rows, training=training and not self.frozen, **options)
        if self.pooling == "mean" and "pooled" in taken:
            outputs["pooled"] = mean_of_positions(outputs["hidden"], rows.get("lengths"))
        if self.frozen:
            outputs = tree.map_structure(ops.stop_gradient, outputs)
        if choices:
            leading = ops.shape(inputs["token_ids"])[:2]
            outputs = tree.map_structure(
                lambda tensor: ops.reshape(tensor, (*leading, *ops.shape(tensor)[1:])), outputs
            )
        lengths = inputs.get("lengths")
        if lengths is not None and not choices:
            length = ops.shape(inputs["token_ids"])[1]
            outputs["padding_mask"] = padding_mask(lengths, length)
        return outputs

    def _taken(self):
        """Return what the heads take, each name once."""
        return dict.fromkeys(name for head in self.heads.values() for name in head.takes)

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": serialize(self.encoder),
            "heads": {name: serialize(head) for name, head in self.heads.items()},
            "frozen": self.frozen,
            "pooling": self.pooling,
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        heads = {name: deserialize(head) for name, head in config["heads"].items()}
        return cls(**{**config, "encoder": deserialize(config["encoder"]), "heads": heads})


def serialize(layer):
    """Return a layer's config. It is built by the model that holds it, which may tie embeddings
    before."""
    config = keras.saving.serialize_keras_object(layer)
    return {name: value for name, value in config.items() if name != "build_config"}


def require_encoder(model, encoder):
    """Raise a ValueError unless it is an encoder such as `Bert`."""
    needed = ("hidden_dim", "pooler")
    missing = [name for name in needed if not hasattr(encoder, name)]
    if missing:
        inner = getattr(encoder, "encoder", None)
        is_below = all(hasattr(inner, name) for name in needed)
        raise ValueError(
            f"{type(model).__name__}: the encoder must be a model with hidden_dim and pooler, as "
            f"Bert; received a {type(encoder).__name__} without {missing}."
            + (f" Its own encoder is one, a {type(inner).__name__}: give that." if is_below else "")
        )


def _require_heads(heads):
    if not isinstance(heads, dict):
        raise ValueError(
            "WithHeads: heads must be a dictionary of heads by name; "
            f"received a {type(heads).__name__}."
        )
    if not heads:
        raise ValueError(f"WithHeads: there must be a head at least; received {heads}.")
    wrong = {name: type(head).__name__ for name, head in heads.items() if not _is_head(head)}
    if wrong:
        raise ValueError(
            "WithHeads: every head must be a layer that says in `takes` what it is called with, as "
            f"ClassificationHead; received {wrong}."
        )


def _is_head(layer):
    return isinstance(layer, keras.layers.Layer) and hasattr(layer, "takes")

"""An encoder and one head, or several."""

import keras
from keras import ops

from seqkeras.attention.masks import padding_mask
from seqkeras.models.heads import MaskedLMHead, MultipleChoiceHead
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class WithHeads(keras.Model):
    """An encoder and what stands on it: one head, or several that are trained at once.

        outputs(name) = heads(name)(encoder(inputs))

    Args:
        encoder: a model that returns "hidden" (B, T, D) and, unless its `pooler` is None, "pooled"
            (B, D), as `Bert`.
        heads: a dictionary of heads by name, as {"classes": ClassificationHead(3)}.
        frozen: True for feature extraction, where the heads alone learn and the encoder runs
            without dropout; False for fine-tuning.

    Call arguments (one dictionary):
        token_ids, lengths, segment_ids: of the encoder; for multiple choice (B, C, T), (B, C),
            (B, C, T), each choice a sequence of its own.
        masked_positions: (B, M) integers, with a `MaskedLMHead`; without them every position.

    Returns:
        A dictionary of what the heads return, by name; the losses of `compile` go by it.

    Raises:
        ValueError: if there is no head, or one that takes what the encoder does not pool.

    Reference: Devlin et al. 2019, sections 3.2, 4 and 5.3, https://arxiv.org/abs/1810.04805
    """

    def __init__(self, encoder, heads, frozen=False, **kwargs):
        super().__init__(**kwargs)
        if not heads:
            raise ValueError(f"WithHeads: there must be a head at least; received {heads}.")
        unpooled = [name for name, head in heads.items() if "pooled" in head.takes]
        if unpooled and encoder.pooler is None:
            raise ValueError(
                f"WithHeads: the encoder must have a pooler for the heads {unpooled}; "
                "received one without."
            )
        self.encoder = encoder
        self.heads = dict(heads)
        self.frozen = frozen
        for head in self.heads.values():
            if isinstance(head, MaskedLMHead):
                head.tie(encoder.embedding)

    def build(self, inputs_shape=None):
        build_once(self.encoder, inputs_shape)
        if self.frozen:  # not earlier: layers that are built later would learn
            self.encoder.trainable = False
        dim = self.encoder.hidden_dim
        choices = any(isinstance(head, MultipleChoiceHead) for head in self.heads.values())
        if inputs_shape is not None:
            choices = len(inputs_shape["token_ids"]) == 3
        shapes = {
            "hidden": (None, None, None, dim) if choices else (None, None, dim),
            "pooled": (None, None, dim) if choices else (None, dim),
        }
        for head in self.heads.values():
            build_once(head, *(shapes[name] for name in head.takes if name in shapes))

    def call(self, inputs, training=False):
        known = {**inputs, **self._encode(inputs, training)}
        return {
            name: head(**{each: known.get(each) for each in head.takes}, training=training)
            for name, head in self.heads.items()
        }

    def _encode(self, inputs, training):
        names = [name for name in ("token_ids", "lengths", "segment_ids") if name in inputs]
        rows = {name: inputs[name] for name in names}
        choices = len(inputs["token_ids"].shape) == 3
        if choices:
            rows = {
                name: ops.reshape(each, (-1, *ops.shape(each)[2:])) for name, each in rows.items()
            }
        outputs = self.encoder(rows, training=training and not self.frozen)
        if self.frozen:
            outputs = {name: ops.stop_gradient(each) for name, each in outputs.items()}
        if choices:
            leading = ops.shape(inputs["token_ids"])[:2]
            outputs = {
                name: ops.reshape(each, (*leading, *ops.shape(each)[1:]))
                for name, each in outputs.items()
            }
        lengths = inputs.get("lengths")
        if lengths is not None and not choices:
            length = ops.shape(inputs["token_ids"])[1]
            outputs["padding_mask"] = padding_mask(lengths, length)
        return outputs

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": serialize(self.encoder),
            "heads": {name: serialize(head) for name, head in self.heads.items()},
            "frozen": self.frozen,
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        heads = {name: deserialize(head) for name, head in config["heads"].items()}
        return cls(**{**config, "encoder": deserialize(config["encoder"]), "heads": heads})


def serialize(layer):
    """A layer's config. It is built by the model that holds it, which may tie embeddings before."""
    config = keras.saving.serialize_keras_object(layer)
    return {name: value for name, value in config.items() if name != "build_config"}

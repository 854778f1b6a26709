"""A recurrent language model in training whose rows go on from batch to batch."""

from collections.abc import Mapping
from typing import Any, Self

import keras
from keras import ops

from seqkeras.tensors import Tensor
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class CarriedState(keras.Model):
    """Truncated back-propagation through time: the state goes on, the gradient does not.

        logits, state(n) = model.read(token_ids(n), state(n - 1)),   state(n - 1) a constant

    The state is among the weights, so that a checkpoint goes on where it was.

    Args:
        model: an `RNNLanguageModel`.
        batch_size: B, rows of every batch.

    Call arguments (one dictionary):
        token_ids: (B, T) integers.
        begins: (B,) booleans, True for rows that begin anew, from the initial state.

    Returns:
        logits: (B, T, V).

    Reference: Williams and Peng 1990, https://doi.org/10.1162/neco.1990.2.4.490
    """

    def __init__(self, model: keras.Model, batch_size: int, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.model, self.batch_size = model, batch_size

    def build(self, inputs_shape: Any = None) -> None:
        build_once(self.model, None)
        self.state = {
            entry.name: self.add_weight(
                name=entry.name,
                shape=(self.batch_size, 1, *entry.shape),
                dtype=entry.dtype,
                initializer="zeros",
                trainable=False,
            )
            for entry in self.model.state_entries
        }

    def call(self, inputs: Mapping[str, Tensor], training: bool = False) -> Tensor:
        begins = inputs["begins"]
        state = {
            name: ops.where(_as_row(begins, value), ops.zeros_like(value), value)
            for name, value in self.state.items()
        }
        logits, state = self.model.read(inputs["token_ids"], state=state, training=training)
        for name, value in state.items():
            self.state[name].assign(ops.stop_gradient(value))
        return logits

    def get_config(self) -> dict[str, Any]:
        model = keras.saving.serialize_keras_object(self.model)
        return {**super().get_config(), "model": model, "batch_size": self.batch_size}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "model": keras.saving.deserialize_keras_object(config["model"])})


def _as_row(flags, value):
    return ops.reshape(flags, (-1, *[1] * (len(value.shape) - 1)))

"""Models in training whose rows go on from batch to batch."""

import abc
from collections.abc import Mapping
from typing import Any, Self

import keras
from keras import ops

from seqkeras.streams import Entry, Streaming
from seqkeras.tensors import Tensor
from seqkeras.values import build_once

BEGINS = "begins"  # the input that says which rows begin anew


class CarriedState(keras.Model, abc.ABC):
    """Truncated back-propagation through time: the state goes on, the gradient does not.

        answers(n), state(n) = read(inputs(n), state(n - 1)),   state(n - 1) a constant

    The state is among the weights, so that a checkpoint goes on where it was.

    Args:
        model: the model that is trained.
        batch_size: B, rows of every batch.

    Call arguments (one dictionary):
        begins: (B,) booleans, True for rows that begin anew, from the initial state; and what the
            model reads.

    Returns:
        The answers.

    Reference: Williams and Peng 1990, https://doi.org/10.1162/neco.1990.2.4.490
    """

    def __init__(self, model: keras.Model, batch_size: int, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.model, self.batch_size = model, batch_size

    @abc.abstractmethod
    def entries(self) -> list[Entry]:
        """Return what the state holds, for each row; the model is built here."""

    @abc.abstractmethod
    def read(
        self, inputs: Mapping[str, Tensor], state: Mapping[str, Tensor], training: bool
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the answers of the model from a state on, and the new state."""

    def build(self, inputs_shape: Any = None) -> None:
        self.state = {
            entry.name: self.add_weight(
                name=entry.name,
                shape=(self.batch_size, *entry.shape),
                dtype=entry.dtype,
                initializer="zeros",
                trainable=False,
            )
            for entry in self.entries()
        }

    def call(self, inputs: Mapping[str, Tensor], training: bool = False) -> Tensor:
        begins = inputs[BEGINS]
        state = {name: _begun(begins, variable.value) for name, variable in self.state.items()}
        answers, state = self.read(inputs, state, training)
        for name, value in state.items():
            self.state[name].assign(ops.stop_gradient(value))
        return answers

    def get_config(self) -> dict[str, Any]:
        model = keras.saving.serialize_keras_object(self.model)
        return {**super().get_config(), "model": model, "batch_size": self.batch_size}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "model": keras.saving.deserialize_keras_object(config["model"])})


@keras.saving.register_keras_serializable("seqkeras")
class CarriedTokens(CarriedState):
    """A `CarriedState` of an `RNNLanguageModel`: token_ids (B, T) -> logits (B, T, V)."""

    def entries(self) -> list[Entry]:
        build_once(self.model, None)
        return [
            Entry(entry.name, (1, *entry.shape), entry.dtype) for entry in self.model.state_entries
        ]

    def read(
        self, inputs: Mapping[str, Tensor], state: Mapping[str, Tensor], training: bool
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        return self.model.read(inputs["token_ids"], state=state, training=training)


@keras.saving.register_keras_serializable("seqkeras")
class CarriedFrames(CarriedState):
    """A `CarriedState` of a functional model of frames that can stream, (B, T, ...) -> an answer
    after each frame, (B, T, ...).

    Inputs without `begins` are whole recordings: the answers are the model's, and the state stays.

    Args:
        model, batch_size: see `CarriedState`.
        frames: name of the input of frames.

    Raises:
        StreamError: if the model can not stream.
    """

    def __init__(self, model: keras.Model, batch_size: int, frames: str = "frames", **kwargs: Any):
        super().__init__(model, batch_size, **kwargs)
        self.frames = frames

    def entries(self) -> list[Entry]:
        self.streaming = Streaming(self.model, self.frames)
        return self.streaming.entries

    def call(self, inputs: Mapping[str, Tensor], training: bool = False) -> Tensor:
        if BEGINS not in inputs:
            return self.model(inputs, training=training)
        return super().call(inputs, training)

    def read(
        self, inputs: Mapping[str, Tensor], state: Mapping[str, Tensor], training: bool
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        others = {name: inputs[name] for name in self.streaming.others}
        answers, state = self.streaming(inputs[self.frames], state, others, training)
        [answers] = answers.values()
        return answers, state

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "frames": self.frames}


def _begun(begins, state):
    """Return the state (B, ...) with zeros in rows that begin anew."""
    begins = ops.reshape(begins, (-1, *[1] * (len(state.shape) - 1)))
    return ops.where(begins, ops.zeros_like(state), state)

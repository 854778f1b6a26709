"""Learning rates that change with the training step, for Keras's optimizers."""

import keras
from keras import ops

__all__ = ["Noam", "WarmUp"]


@keras.saving.register_keras_serializable("seqkeras")
class Noam(keras.optimizers.schedules.LearningRateSchedule):
    """The Transformer's learning rate: it grows linearly, then falls as the root of the step.

        rate = scale D^-0.5 min(step^-0.5, step warmup_steps^-1.5)

    Notation: D is the paper's d_model; Keras counts steps from 0, the paper from 1. Tensor2Tensor
    names the schedule "noam", after an author of the paper.

    Args:
        hidden_dim: D.
        warmup_steps: number of steps over which the rate grows.
        scale: factor of the paper's rate.

    Call arguments:
        step: the number of training steps so far.

    Returns:
        The rate of the next step, a float32 scalar.

    Raises:
        ValueError: if hidden_dim, warmup_steps or scale is not positive.

    Reference: Vaswani et al. 2017, section 5.3, equation 3, https://arxiv.org/abs/1706.03762

    Example:
        >>> from seqkeras.learning_rates import Noam
        >>> rate = Noam(hidden_dim=512, warmup_steps=4000)
        >>> [round(float(rate(step)), 6) for step in (1999, 3999, 15999)]  # half, the peak, half
        [0.000349, 0.000699, 0.000349]
    """

    def __init__(self, hidden_dim: int, warmup_steps: int = 4000, scale: float = 1.0):
        if min(hidden_dim, warmup_steps, scale) <= 0:
            raise ValueError(
                "Noam: hidden_dim, warmup_steps and scale must be positive; "
                f"received {hidden_dim}, {warmup_steps} and {scale}."
            )
        self.hidden_dim = hidden_dim
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1
        rate = ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)
        return self.scale * self.hidden_dim**-0.5 * rate

    def get_config(self):
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable("seqkeras")
class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that grows linearly from zero, and then goes by another schedule.

        rate(i) = learning_rate i / warmup_steps    while i < warmup_steps
        rate(i) = after(i - warmup_steps)           from there on

    Args:
        learning_rate: the rate at the end of the warm-up.
        warmup_steps: number of steps over which the rate grows.
        after: a `keras.optimizers.schedules.LearningRateSchedule`; None keeps the rate.

    Call arguments:
        step: the number of training steps so far.

    Returns:
        The rate of the next step, a float32 scalar.

    Raises:
        ValueError: if learning_rate is not positive, or warmup_steps negative.

    Reference: Goyal et al. 2017, section 2.2, https://arxiv.org/abs/1706.02677

    Example:
        >>> import keras
        >>> from seqkeras.learning_rates import WarmUp
        >>> cosine = keras.optimizers.schedules.CosineDecay(0.5, decay_steps=900)
        >>> rate = WarmUp(0.5, warmup_steps=100, after=cosine)
        >>> [round(float(rate(step)), 3) for step in (0, 50, 100, 550, 1000)]
        [0.0, 0.25, 0.5, 0.25, 0.0]
    """

    def __init__(
        self,
        learning_rate: float,
        warmup_steps: int,
        after: keras.optimizers.schedules.LearningRateSchedule | None = None,
    ):
        if learning_rate <= 0 or warmup_steps < 0:
            raise ValueError(
                "WarmUp: learning_rate must be positive and warmup_steps not negative; received "
                f"{learning_rate} and {warmup_steps}."
            )
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.after = after

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rate = ops.convert_to_tensor(self.learning_rate, "float32")
        growing = rate * step / max(1, self.warmup_steps)
        if self.after is not None:
            rate = self.after(ops.maximum(step - self.warmup_steps, 0.0))
        return ops.where(step < self.warmup_steps, growing, rate)

    def get_config(self):
        return {
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            "after": keras.saving.serialize_keras_object(self.after),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"after": keras.saving.deserialize_keras_object(config["after"])})

"""Numbers that change with the training step: step -> value.

These schedules fall, like the share of given tokens in scheduled sampling
(`seqkeras.models.RNNSeq2Seq`). A schedule is plain numbers, compares by them, and is saved as them.
"""

import dataclasses
import math

import keras
from keras import ops

__all__ = ["Constant", "InverseSigmoidDecay", "LinearDecay", "Schedule"]


class Schedule:
    """Base of the schedules; a subclass is a frozen dataclass with a method `value(step)`.

    Call arguments:
        step: the number of training steps so far, a number or a scalar tensor.

    Returns:
        The value, a float32 scalar.

    Example:
        >>> import dataclasses
        >>> from seqkeras.schedules import Schedule
        >>> @dataclasses.dataclass(frozen=True)
        ... class Halving(Schedule):
        ...     steps: int
        ...
        ...     def value(self, step):
        ...         return 0.5 ** (step // self.steps)
        >>> float(Halving(steps=100)(250))
        0.25
    """

    def __call__(self, step):
        return self.value(ops.cast(step, "float32"))

    def get_config(self):
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@keras.saving.register_keras_serializable("seqkeras")
@dataclasses.dataclass(frozen=True)
class Constant(Schedule):
    """The same value at every step.

        value(i) = k

    Args:
        k: the value, from 0 to 1.

    Call arguments:
        step: i; see `Schedule`.

    Returns:
        The value, a float32 scalar.

    Raises:
        ValueError: if k is out of range.

    Reference: Bengio et al. 2015, section 2.4, https://arxiv.org/abs/1506.03099

    Example:
        >>> from seqkeras.schedules import Constant
        >>> float(Constant(0.25)(1000))
        0.25
    """

    k: float

    def __post_init__(self):
        _require(self, 0 <= self.k <= 1, "k must be from 0 to 1")

    def value(self, step):
        return ops.convert_to_tensor(self.k, "float32")


@keras.saving.register_keras_serializable("seqkeras")
@dataclasses.dataclass(frozen=True)
class LinearDecay(Schedule):
    """A line that falls to a floor.

        value(i) = max(floor, k - c i)

    Notation: the paper's k and c; its epsilon is our floor.

    Args:
        k: the value at step 0, from 0 to 1.
        c: how much the value falls at each step, at least 0.
        floor: the least value, from 0 to k.

    Call arguments:
        step: i; see `Schedule`.

    Returns:
        The value, a float32 scalar.

    Raises:
        ValueError: if a number is out of range.

    Reference: Bengio et al. 2015, section 2.4, https://arxiv.org/abs/1506.03099

    Example:
        >>> from seqkeras.schedules import LinearDecay
        >>> decay = LinearDecay(k=1.0, c=0.25, floor=0.5)
        >>> [float(decay(step)) for step in (0, 1, 2, 3)]
        [1.0, 0.75, 0.5, 0.5]
    """

    k: float
    c: float
    floor: float = 0.0

    def __post_init__(self):
        _require(self, 0 <= self.k <= 1, "k must be from 0 to 1")
        _require(self, self.c >= 0, "c must be at least 0")
        _require(self, 0 <= self.floor <= self.k, "floor must be from 0 to k")

    def value(self, step):
        return ops.maximum(self.floor, self.k - self.c * step)


@keras.saving.register_keras_serializable("seqkeras")
@dataclasses.dataclass(frozen=True)
class InverseSigmoidDecay(Schedule):
    """A sigmoid that falls from nearly one to zero.

        value(i) = k / (k + exp(i / k)) = sigmoid(log k - i / k)

    Notation: the paper's k. The second form, which we compute, never overflows. The value is one
    half at i = k log k.

    Args:
        k: at least 1; the larger k, the later and the slower the value falls.

    Call arguments:
        step: i; see `Schedule`.

    Returns:
        The value, a float32 scalar.

    Raises:
        ValueError: if k is under 1.

    Reference: Bengio et al. 2015, section 2.4, https://arxiv.org/abs/1506.03099

    Example:
        >>> import math
        >>> from seqkeras.schedules import InverseSigmoidDecay
        >>> decay = InverseSigmoidDecay(k=100.0)
        >>> [round(float(decay(step)), 3) for step in (0, 100 * math.log(100), 1000)]
        [0.99, 0.5, 0.005]
    """

    k: float

    def __post_init__(self):
        _require(self, self.k >= 1, "k must be at least 1")

    def value(self, step):
        return ops.sigmoid(math.log(self.k) - step / self.k)


def _require(schedule, holds, what):
    if not holds:
        raise ValueError(f"{type(schedule).__name__}: {what}; received {schedule.get_config()}.")

"""Teacher forcing and scheduled sampling: the decoder's inputs in training."""

import numbers

import keras
from keras import ops

from seqkeras.schedules import Constant, Schedule

DRAWS = ("token", "batch")
COUNTER = "training_step"  # the name of the weight that counts


class TeacherForcing(keras.layers.Layer):
    """The steps at which the decoder reads the target; at the others it reads its own prediction.

        given(b, t) ~ Bernoulli(ratio(i)),    given(b, 1) = True

    where i counts the training steps. The counter is a weight, so training continues where it was.

    Args:
        ratio: a number from 0 to 1, or a `seqkeras.schedules.Schedule`.
        per: "token", a draw for each step of each row, or "batch", one draw for all of them.

    Call arguments:
        target_ids: (B, T) integers.

    Returns:
        (B, T) booleans. Each call is a training step.

    Raises:
        ValueError: if the ratio is no number from 0 to 1 and no schedule, or `per` is unknown.

    Reference: Bengio et al. 2015, section 2.4, https://arxiv.org/abs/1506.03099
    """

    def __init__(self, ratio, per="token", **kwargs):
        super().__init__(**kwargs)
        if not isinstance(ratio, Schedule):
            if not isinstance(ratio, numbers.Real) or not 0 <= ratio <= 1:
                raise ValueError(
                    "TeacherForcing: ratio must be a number from 0 to 1 or a "
                    f"seqkeras.schedules.Schedule; received {ratio!r}."
                )
            ratio = Constant(ratio)
        if per not in DRAWS:
            raise ValueError(f"TeacherForcing: per must be one of {DRAWS}; received {per!r}.")
        self.schedule = ratio
        self.per = per
        self.seed_generator = keras.random.SeedGenerator()

    @property
    def always(self):
        """Whether every step reads the target, so that nothing needs to be drawn or counted."""
        return self.schedule == Constant(1)

    def build(self, target_shape=None):
        if isinstance(self.schedule, Constant):
            return
        self.training_step = self.add_weight(
            name=COUNTER,
            shape=(),
            initializer="zeros",
            dtype="float32",
            trainable=False,
            autocast=False,  # float16 counts to 2,048 only
            aggregation="only_first_replica",
        )

    def call(self, target_ids):
        shape = ops.shape(target_ids) if self.per == "token" else (1, 1)
        draws = keras.random.uniform(shape, seed=self.seed_generator, dtype="float32")
        forced = draws < self._ratio()
        return forced | (ops.arange(ops.shape(target_ids)[1]) == 0)

    def _ratio(self):
        if isinstance(self.schedule, Constant):
            return self.schedule.k
        ratio = self.schedule(self.training_step)
        self.training_step.assign_add(1)
        return ratio

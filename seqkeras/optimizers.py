"""Keras's optimizers, right where Keras 3.15 is wrong.

Four faults, on which `tests/seqkeras/test_optimizers.py` has an eye:

- Adam, AdamW and Adafactor square the rows of an embedding's gradient one by one, where a token
  that stands several times in a batch has several rows: (a + b)^2 becomes a^2 + b^2. Clipping
  takes the norm of such rows too. Here rows of one token are summed first.
- With `gradient_accumulation_steps` a schedule of the learning rate counts the batches, not the
  updates of the weights.
- With `gradient_accumulation_steps` and `use_ema` the average is taken at every batch.
- Under a `tf.distribute.Strategy` the gradients of each replica are clipped before they are summed.

And one habit of the field: weight decay leaves weights of one axis alone, that is biases and the
scales of normalization (Radford et al. 2018, section 4.1). On TensorFlow, Adam and AdamW update a
variable in one pass over its numbers, where Keras's take some twenty.

Every optimizer here takes `rates`, learning rates of single variables, for fine-tuning:

    rate(v) = factor(v) rate [step >= first step(v)]

Weight decay follows the rate. Before its first step a variable keeps its value, and the means of
its gradients are kept up (Howard and Ruder 2018, sections 3.2 and 3.3,
https://arxiv.org/abs/1801.06146).
"""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.gradients import hold_gradient

__all__ = ["Adafactor", "Adam", "AdamW", "Lion", "SGD"]


class _Mended:
    """The methods that the optimizers here put before Keras's.

    Args:
        rates: for each variable of `build`, in that order, a pair (factor, first step); None: the
            same rate for all.
    """

    def __init__(self, *arguments, rates: Sequence[tuple[float, int]] | None = None, **options):
        super().__init__(*arguments, **options)
        self._rates = None if rates is None else [tuple(rate) for rate in rates]
        self._rate = None  # the (factor, first step) of the variables that are at work

    def build(self, variables):
        super().build(variables)
        if self._rates is not None and len(self._rates) != len(variables):
            raise ValueError(
                f"{type(self).__name__}: rates must have a pair for each of the {len(variables)} "
                f"variables; received {len(self._rates)}."
            )

    def update_step(self, gradient, variable, learning_rate):
        if self._rates is not None:
            rate = self._rates[self._get_variable_index(variable)]
            learning_rate = self._rated(learning_rate, rate)
        super().update_step(gradient, variable, learning_rate)

    def _apply_weight_decay(self, variables):
        if self._rates is None:
            super()._apply_weight_decay(variables)
            return
        groups = {}
        for variable in variables:
            rate = self._rates[self._get_variable_index(variable)]
            groups.setdefault(rate, []).append(variable)
        for self._rate, group in groups.items():
            super()._apply_weight_decay(group)
        self._rate = None

    def _rated(self, learning_rate, rate):
        """Return the learning rate of variables with a pair (factor, first step)."""
        factor, first_step = rate
        if first_step:
            factor = factor * ops.cast(self.iterations >= first_step, "float32")
        return ops.cast(learning_rate, "float32") * factor

    def apply(self, grads, trainable_variables=None):
        """Update variables by gradients, as Keras's; rows of an embedding are summed first."""
        variables = trainable_variables
        if variables is None:
            variables = self._trainable_variables
        dense = [_dense(gradient, variable) for gradient, variable in zip(grads, variables)]
        super().apply(dense, trainable_variables)

    def _clip_gradients(self, grads):
        return super()._clip_gradients(_over_replicas(grads))

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars  # which `_clip_gradients` has summed

    def _get_current_learning_rate(self):
        if isinstance(self._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
            learning_rate = self._learning_rate(self.iterations)
        else:
            learning_rate = super()._get_current_learning_rate()
        return learning_rate if self._rate is None else self._rated(learning_rate, self._rate)

    def get_config(self):
        rates = {} if self._rates is None else {"rates": self._rates}
        return {**super().get_config(), **rates}

    def _use_weight_decay(self, variable):
        return len(variable.shape) > 1 and super()._use_weight_decay(variable)

    def _update_model_variables_moving_average(self, trainable_variables):
        if not self.gradient_accumulation_steps:
            super()._update_model_variables_moving_average(trainable_variables)
            return
        updated = ops.equal((self._iterations + 1) % self.gradient_accumulation_steps, 0)
        later = ops.not_equal(self.iterations, 0)
        for variable, average in zip(trainable_variables, self._model_variables_moving_average):
            if average is not None:
                momentum = self.ema_momentum * ops.cast(later, variable.dtype)
                momentum = ops.where(updated, momentum, ops.ones_like(momentum))
                average.assign(momentum * average + (1 - momentum) * variable)


class _InOnePass:
    """Adam by TensorFlow's kernel, where there is one: without `amsgrad`.

    Keras's formula, rounded otherwise. Weight decay is a part of the update: it reads the variable
    that the kernel reads next.
    """

    @property
    def _has_kernel(self):
        return keras.backend.backend() == "tensorflow" and not self.amsgrad

    def update_step(self, gradient, variable, learning_rate):
        if not self._has_kernel:
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf

        dtype = variable.dtype
        index = self._get_variable_index(variable)
        learning_rate = tf.cast(learning_rate, dtype)
        if self.weight_decay is not None and self._use_weight_decay(variable):
            variable.assign(variable * (1 - learning_rate * self.weight_decay))
        step = tf.cast(self.iterations + 1, dtype)
        beta_1, beta_2 = tf.constant(self.beta_1, dtype), tf.constant(self.beta_2, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=learning_rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.constant(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )

    def _apply_weight_decay(self, variables):
        if not self._has_kernel:
            super()._apply_weight_decay(variables)


def _dense(gradient, variable):
    """Return a gradient as one tensor of the variable's shape."""
    if not hasattr(gradient, "indices") or not hasattr(gradient, "values"):
        return gradient
    values, rows = gradient.values, variable.shape[0]
    return ops.segment_sum(values, gradient.indices, num_segments=rows)


def _over_replicas(gradients):
    """Return the sum of the gradients of all replicas of a `tf.distribute.Strategy`."""
    if keras.backend.backend() != "tensorflow":
        return gradients
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    sums = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    hold_gradient(sums[0])
    return sums


@keras.saving.register_keras_serializable("seqkeras")
class SGD(_Mended, keras.optimizers.SGD):
    """`keras.optimizers.SGD`, mended as the module says, with a rate for each variable.

    Args:
        arguments, options: see `keras.optimizers.SGD`.
        rates: a pair (factor, first step) for each variable of `build`, in that order; None: the
            same rate for all.

    Raises:
        ValueError: in `build`, if rates do not have a pair for each variable.

    Example:
        >>> import keras
        >>> from seqkeras.optimizers import SGD
        >>> weight, bias = keras.Variable([[1.0]]), keras.Variable([1.0])
        >>> optimizer = SGD(0.5, rates=[(1.0, 0), (0.25, 0)])  # the second is slower
        >>> optimizer.apply([keras.ops.ones((1, 1)), keras.ops.ones(1)], [weight, bias])
        >>> weight.numpy().tolist(), bias.numpy().tolist()
        ([[0.5]], [0.875])
    """


@keras.saving.register_keras_serializable("seqkeras")
class Adam(_Mended, _InOnePass, keras.optimizers.Adam):
    """`keras.optimizers.Adam`, mended as the module says, with a rate for each variable.

    Args:
        arguments, options: see `keras.optimizers.Adam`.
        rates: a pair (factor, first step) for each variable of `build`, in that order; None: the
            same rate for all.

    Raises:
        ValueError: in `build`, if rates do not have a pair for each variable.

    Reference: Kingma and Ba 2015, algorithm 1, https://arxiv.org/abs/1412.6980

    Example:
        >>> import keras
        >>> from seqkeras.optimizers import Adam
        >>> weight = keras.Variable([1.0, 1.0])
        >>> Adam(0.25).apply([keras.ops.convert_to_tensor([4.0, -100.0])], [weight])
        >>> weight.numpy().round(3).tolist()  # a first step has the size of the rate
        [0.75, 1.25]
    """


@keras.saving.register_keras_serializable("seqkeras")
class AdamW(_Mended, _InOnePass, keras.optimizers.AdamW):
    """`keras.optimizers.AdamW`, mended as the module says, with a rate for each variable.

    Args:
        arguments, options: see `keras.optimizers.AdamW`.
        rates: a pair (factor, first step) for each variable of `build`, in that order; None: the
            same rate for all.

    Raises:
        ValueError: in `build`, if rates do not have a pair for each variable.

    Reference: Loshchilov and Hutter 2019, algorithm 2, https://arxiv.org/abs/1711.05101

    Example:
        >>> import keras
        >>> from seqkeras.optimizers import AdamW
        >>> weight, bias = keras.Variable([[1.0]]), keras.Variable([1.0])
        >>> optimizer = AdamW(0.5, weight_decay=0.5)
        >>> optimizer.apply([keras.ops.zeros((1, 1)), keras.ops.zeros(1)], [weight, bias])
        >>> weight.numpy().tolist(), bias.numpy().tolist()  # a bias does not decay
        ([[0.75]], [1.0])
    """


@keras.saving.register_keras_serializable("seqkeras")
class Lion(_Mended, keras.optimizers.Lion):
    """`keras.optimizers.Lion`, mended as the module says, with a rate for each variable.

    Args:
        arguments, options: see `keras.optimizers.Lion`.
        rates: a pair (factor, first step) for each variable of `build`, in that order; None: the
            same rate for all.

    Raises:
        ValueError: in `build`, if rates do not have a pair for each variable.

    Reference: Chen et al. 2023, algorithm 2, https://arxiv.org/abs/2302.06675

    Example:
        >>> import keras
        >>> from seqkeras.optimizers import Lion
        >>> weight = keras.Variable([1.0, 1.0])
        >>> Lion(0.25).apply([keras.ops.convert_to_tensor([4.0, -0.01])], [weight])
        >>> weight.numpy().tolist()  # the sign of the gradient alone counts
        [0.75, 1.25]
    """


@keras.saving.register_keras_serializable("seqkeras")
class Adafactor(_Mended, keras.optimizers.Adafactor):
    """`keras.optimizers.Adafactor`, mended as the module says, with a rate for each variable.

    Args:
        arguments, options: see `keras.optimizers.Adafactor`.
        rates: a pair (factor, first step) for each variable of `build`, in that order; None: the
            same rate for all.

    Raises:
        ValueError: in `build`, if rates do not have a pair for each variable.

    Reference: Shazeer and Stern 2018, algorithm 4, https://arxiv.org/abs/1804.04235

    Example:
        >>> import keras
        >>> from seqkeras.optimizers import Adafactor
        >>> weight = keras.Variable([10.0, 10.0])
        >>> optimizer = Adafactor(0.25, relative_step=False)
        >>> optimizer.apply([keras.ops.convert_to_tensor([4.0, -0.1])], [weight])
        >>> weight.numpy().round(2).tolist()  # a step is relative to the size of the weights
        [7.5, 12.5]
    """

"""Losses that Keras does not have.

Language models train with Keras's own masked cross-entropy, which is the mean over real tokens:
`keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)`.
"""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.targets import counts
from seqkeras.tensors import Tensor
from seqkeras.values import BANNED_LOGIT

__all__ = [
    "ChainLoss",
    "DistanceLoss",
    "ForecastLoss",
    "HiddenStateLoss",
    "PinballLoss",
    "SmoothedCrossEntropy",
    "SoftTargetLoss",
    "span_loss",
]


@keras.saving.register_keras_serializable("seqkeras")
def span_loss(positions: Tensor, logits: Tensor) -> Tensor:
    """Return the cross-entropy of one end of an answer, its start or its end.

        loss = -log softmax(logits)[position]

    The loss of a span is the sum of two: `compile(loss={"start_logits": span_loss,
    "end_logits": span_loss})`.

    Args:
        positions: (B,) integers, where the answer starts or ends; a negative one means that there
            is no answer, and gives the loss 0.
        logits: (B, T), very low at impossible positions.

    Returns:
        (B,) losses, in float32 at least.

    Reference: Seo et al. 2017, section 2, "Training", https://arxiv.org/abs/1611.01603

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.losses import span_loss
        >>> logits = np.log([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])
        >>> ops.convert_to_numpy(span_loss(np.array([1, -1]), logits)).round(3)  # -1: none
        array([0.693, 0.   ])
    """
    logits = ops.cast(logits, keras.backend.result_type(logits.dtype, "float32"))
    positions = ops.reshape(ops.cast(positions, "int32"), (-1, 1))
    chosen = ops.take_along_axis(ops.log_softmax(logits), ops.maximum(positions, 0), axis=1)
    return ops.where(positions < 0, 0.0, -chosen)[:, 0]


@keras.saving.register_keras_serializable("seqkeras")
class PinballLoss(keras.losses.Loss):
    """Quantile loss, smallest where a share q of the targets lies below the prediction.

        loss = mean over q of max(q (y - p_q), (q - 1) (y - p_q))

    Args:
        quantiles: the q, numbers between 0 and 1, in the order of the predictions.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (...,) targets y.
        y_pred: (..., quantiles) predictions p.

    Returns:
        A scalar, or the losses by target with reduction="none".

    Raises:
        ValueError: if a quantile is not between 0 and 1, or predictions and quantiles differ in
            number.

    Reference: Koenker and Bassett 1978, section 3, https://doi.org/10.2307/1913643

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import PinballLoss
        >>> loss = PinballLoss(quantiles=[0.25, 0.75])
        >>> float(loss(np.array([10.0]), np.array([[6.0, 14.0]])))  # (0.25 * 4 + 0.25 * 4) / 2
        1.0
    """

    def __init__(
        self,
        quantiles: Sequence[float],
        reduction: str | None = "sum_over_batch_size",
        name: str = "pinball_loss",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        if not quantiles or not all(0 < q < 1 for q in quantiles):
            raise ValueError(
                f"PinballLoss: quantiles must lie between 0 and 1; received {quantiles}."
            )
        self.quantiles = list(quantiles)

    def call(self, y_true, y_pred):
        if y_pred.shape[-1] != len(self.quantiles):
            raise ValueError(
                f"PinballLoss: y_pred must have {len(self.quantiles)} quantiles on its last axis; "
                f"received {tuple(y_pred.shape)}."
            )
        q = ops.convert_to_tensor(self.quantiles, y_pred.dtype)
        error = y_true[..., None] - y_pred
        return ops.mean(ops.maximum(q * error, (q - 1) * error), axis=-1)

    def get_config(self):
        return {**super().get_config(), "quantiles": self.quantiles}


class _Ignoring(keras.losses.Loss):
    """Base of the losses whose mean leaves out what has a target id, `ignore_class`; None: nothing
    is left out."""

    def __init__(self, ignore_class, reduction, name, dtype):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.ignore_class = ignore_class

    def __call__(self, y_true, y_pred, sample_weight=None):
        if self.ignore_class is not None:
            counted = ops.cast(counts(y_true, self.ignore_class), self.dtype)
            sample_weight = counted if sample_weight is None else counted * sample_weight
        return super().__call__(y_true, y_pred, sample_weight)

    def get_config(self):
        return {**super().get_config(), "ignore_class": self.ignore_class}


@keras.saving.register_keras_serializable("seqkeras")
class ForecastLoss(_Ignoring):
    """Errors of a forecast in the units of its targets' scales; the mean over known targets.

        e = (y - p) / s, or with a growth d of the target (exp(d y) - exp(d p)) / s
        loss = mean of |e|, of e^2, or over quantiles of max(q e_q, (q - 1) e_q)

    Args:
        kind: "mae", "mse" or "quantiles".
        scale: s, a positive number for each target, such as its standard deviation.
        quantiles: the q, see `PinballLoss`, where the kind is "quantiles".
        growth: d, a number for each target: above 0 where y and p are logarithms in units of d, so
            that the error is the error of their exponentials; else 0. None: 0 for all.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (B, horizon, C) targets y; a NaN is unknown, and is left out.
        y_pred: (B, horizon, C) predictions p; (B, horizon, C, quantiles) for the kind "quantiles".

    Returns:
        A scalar, or the losses by target with reduction="none".

    Raises:
        ValueError: if the kind is unknown, or a quantile is not between 0 and 1.

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import ForecastLoss
        >>> loss = ForecastLoss("mae", scale=[2.0])
        >>> y_true = np.array([[[3.0], [float("nan")]]])  # the second step is unknown
        >>> float(loss(y_true, np.array([[[7.0], [100.0]]])))  # |3 - 7| / 2
        2.0
    """

    KINDS = ("mae", "mse", "quantiles")

    def __init__(
        self,
        kind: str,
        scale: Sequence[float],
        quantiles: Sequence[float] = (),
        growth: Sequence[float] | None = None,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "forecast_loss",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(float("nan"), reduction, name, dtype)
        if kind not in self.KINDS:
            raise ValueError(
                f"ForecastLoss: kind must be {', '.join(self.KINDS)}; received {kind}."
            )
        self.kind, self.scale, self.quantiles = kind, [float(number) for number in scale], quantiles
        self.growth = [float(number) for number in growth or [0.0] * len(self.scale)]
        self.pinball = PinballLoss(quantiles) if kind == "quantiles" else None

    def call(self, y_true, y_pred):
        scale, growth = (
            ops.convert_to_tensor(numbers, y_pred.dtype) for numbers in (self.scale, self.growth)
        )
        y_true = ops.where(counts(y_true, self.ignore_class), y_true, 0)
        if self.kind == "quantiles":
            y_true, scale, growth = y_true[..., None], scale[:, None], growth[:, None]
        error = y_true - y_pred
        if any(self.growth):  # exp(d y) - exp(d p) = exp(d p) (exp(d (y - p)) - 1)
            error = ops.where(
                growth > 0, ops.exp(growth * y_pred) * ops.expm1(growth * error), error
            )
        error = error / scale
        if self.kind == "quantiles":
            return self.pinball.call(ops.zeros_like(error[..., 0]), -error)
        return ops.abs(error) if self.kind == "mae" else ops.square(error)

    def get_config(self):
        config = super().get_config()
        del config["ignore_class"]
        arguments = {"kind": self.kind, "scale": self.scale, "growth": self.growth}
        arguments["quantiles"] = [*self.quantiles]
        return {**config, **arguments}


@keras.saving.register_keras_serializable("seqkeras")
class SmoothedCrossEntropy(_Ignoring):
    """Cross-entropy with label smoothing; the mean over real tokens.

        loss = -sum_v q(v) log softmax(logits)_v,   q(v) = (1 - e) [v = y] + e / V

    Notation: e is the paper's epsilon_ls. V and the sum are of the classes that may be chosen:
    those whose logit is not `BANNED_LOGIT`, which a `SpanHead` gives to padding.

    Args:
        label_smoothing: e, from 0 to 1.
        ignore_class: target id that is left out, such as padding; None leaves none out.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (...) integers y; the loss is NaN where y is V or more.
        y_pred: (..., V) logits.

    Returns:
        A scalar, or the losses by target with reduction="none".

    Raises:
        ValueError: if label_smoothing is not from 0 to 1.

    Reference: Szegedy et al. 2016, section 7, https://arxiv.org/abs/1512.00567; Vaswani et al.
    2017, section 5.4, https://arxiv.org/abs/1706.03762

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import SmoothedCrossEntropy
        >>> loss = SmoothedCrossEntropy(label_smoothing=0.1, ignore_class=0)
        >>> logits = np.array([[[0.0, 0.0, 9.0], [0.0, 0.0, 0.0]]])
        >>> round(float(loss(np.array([[2, 0]]), logits)), 3)  # 0.1 * 2 / 3 * 9: too sure
        0.6
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        ignore_class: int | None = None,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "smoothed_cross_entropy",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(ignore_class, reduction, name, dtype)
        if not 0 <= label_smoothing <= 1:
            raise ValueError(
                "SmoothedCrossEntropy: label_smoothing must be from 0 to 1; "
                f"received {label_smoothing}."
            )
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        num_classes = ops.shape(y_pred)[-1]
        y = ops.cast(y_true, "int32")
        if self.ignore_class is not None:
            y = ops.where(ops.equal(y, self.ignore_class), 0, y)
        logits = y_pred - ops.stop_gradient(ops.max(y_pred, axis=-1, keepdims=True))
        # The gradient of a lookup would be written number by number into zeros.
        is_target = ops.equal(ops.arange(num_classes, dtype="int32"), y[..., None])
        chosen = ops.sum(ops.where(is_target, logits, 0), axis=-1)
        e = self.label_smoothing
        losses = ops.log(ops.sum(ops.exp(logits), axis=-1)) - (1 - e) * chosen
        if e:
            allowed = y_pred > BANNED_LOGIT / 2
            number = ops.maximum(ops.sum(ops.cast(allowed, logits.dtype), axis=-1), 1)
            losses -= e * ops.sum(ops.where(allowed, logits, 0), axis=-1) / number
        return ops.where(y < num_classes, losses, float("nan"))

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("seqkeras")
class SoftTargetLoss(keras.losses.Loss):
    """Distillation: the cross-entropy with a teacher's probabilities at a temperature.

        loss = -T^2 sum_v p(v) log q(v),   p = softmax(teacher / T),  q = softmax(student / T)

    T^2 keeps the gradient's size independent of the temperature. The mean uses sample weights,
    which are 0 for padding; the teacher gets no gradient.

    Args:
        temperature: T.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (..., V) the teacher's logits.
        y_pred: (..., V) the student's logits.

    Returns:
        A scalar, or the losses by target with reduction="none".

    Raises:
        ValueError: if the temperature is not positive.

    Reference: Hinton et al. 2015, section 2, https://arxiv.org/abs/1503.02531

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import SoftTargetLoss
        >>> loss = SoftTargetLoss(temperature=1.0)
        >>> teacher = np.log([[0.5, 0.5]])
        >>> round(float(loss(teacher, teacher)), 3)  # the teacher's entropy, log 2, is the least
        0.693
    """

    def __init__(
        self,
        temperature: float = 2.0,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "soft_target_loss",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        if not temperature > 0:
            raise ValueError(
                f"SoftTargetLoss: temperature must be positive; received {temperature}."
            )
        self.temperature = temperature

    def call(self, y_true, y_pred):
        p = ops.softmax(ops.stop_gradient(y_true) / self.temperature)
        log_q = ops.log_softmax(y_pred / self.temperature)
        return -(self.temperature**2) * ops.sum(p * log_q, axis=-1)

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}


@keras.saving.register_keras_serializable("seqkeras")
class DistanceLoss(_Ignoring):
    """The mean of a distance that the model computes, such as `seqkeras.models.Distillation`.

        loss = y_pred

    Args:
        ignore_class: target that is left out, such as the target of padding; None leaves none out.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (...) zeros, or the ignored target.
        y_pred: (...) distances.

    Returns:
        A scalar, or the losses by target with reduction="none".

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import DistanceLoss
        >>> loss = DistanceLoss(ignore_class=-1)
        >>> float(loss(np.array([[0.0, 0.0, -1.0]]), np.array([[2.0, 4.0, 99.0]])))
        3.0
    """

    def __init__(
        self,
        ignore_class: int | None = None,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "distance_loss",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(ignore_class, reduction, name, dtype)

    def call(self, y_true, y_pred):
        return y_pred


@keras.saving.register_keras_serializable("seqkeras")
class HiddenStateLoss(keras.losses.Loss):
    """Distillation: how far a student's hidden states are from its teacher's.

        "mse":    loss = mean over D of (teacher - student)^2
        "cosine": loss = 1 - cos(teacher, student)

    Padding is left out by a sample weight of 0. The loss compares one layer; of several layers,
    each has a `seqkeras.models.HiddenStateHead`.

    Args:
        distance: "mse", TinyBERT's, or "cosine", DistilBERT's.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (..., D) the teacher's hidden states.
        y_pred: (..., D) the student's hidden states, mapped to the teacher's width.

    Returns:
        A scalar, or the losses by target with reduction="none".

    Raises:
        ValueError: if the distance is unknown, or the widths differ.

    Reference: Jiao et al. 2020, equation 8, https://arxiv.org/abs/1909.10351; Sanh et al. 2019,
    section 2, https://arxiv.org/abs/1910.01108

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import HiddenStateLoss
        >>> teacher, student = np.array([[1.0, 0.0]]), np.array([[3.0, 0.0]])
        >>> float(HiddenStateLoss("mse")(teacher, student))
        2.0
        >>> float(HiddenStateLoss("cosine")(teacher, student))  # the direction is right
        0.0
    """

    def __init__(
        self,
        distance: str = "mse",
        reduction: str | None = "mean_with_sample_weight",
        name: str = "hidden_state_loss",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        if distance not in ("mse", "cosine"):
            raise ValueError(
                f"HiddenStateLoss: distance must be 'mse' or 'cosine'; received {distance!r}."
            )
        self.distance = distance

    def call(self, y_true, y_pred):
        if y_true.shape[-1] != y_pred.shape[-1]:
            raise ValueError(
                "HiddenStateLoss: y_true and y_pred must have one width; "
                f"received {y_true.shape[-1]} and {y_pred.shape[-1]}."
            )
        if self.distance == "mse":
            return ops.mean(ops.square(y_true - y_pred), axis=-1)
        return 1 - ops.sum(ops.normalize(y_true) * ops.normalize(y_pred), axis=-1)

    def get_config(self):
        return {**super().get_config(), "distance": self.distance}


@keras.saving.register_keras_serializable("seqkeras")
class ChainLoss(_Ignoring):
    """Minus the log-probability of tags in a linear-chain conditional random field, for each token.

        loss(t) = log Z(t) - log Z(t-1) - potential(t, y(t-1), y(t))

    Notation: Z(t) is the sum of exp of the potentials over all tags of the first t tagged tokens,
    Z(0) = 1; so the losses of a sequence sum to -log p(y | x). The mean is over the tagged tokens.
    y(0) is the row K of the potentials.

    Args:
        ignore_class: target of tokens without a tag, such as padding, or a token that is not the
            first of its word: the chain skips them.
        reduction, name, dtype: see `keras.losses.Loss`.

    Call arguments:
        y_true: (B, T) integers y.
        y_pred: (B, T, K + 1, K) potentials, from `seqkeras.models.LinearChain`.

    Returns:
        A scalar, or the losses by target with reduction="none".

    Raises:
        ValueError: if y_pred has another shape.

    Reference: Lafferty et al. 2001, section 3; Lample et al. 2016, section 2.2,
    https://arxiv.org/abs/1603.01360

    Example:
        >>> import numpy as np
        >>> from seqkeras.losses import ChainLoss
        >>> potentials = np.zeros((1, 2, 4, 3), "float32")  # 2 tokens of 3 tags, all equally likely
        >>> losses = ChainLoss(reduction="sum")(np.array([[0, 2]]), potentials)
        >>> round(float(losses), 3)  # 2 log 3
        2.197
    """

    def __init__(
        self,
        ignore_class: int = -1,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "chain_loss",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(ignore_class, reduction, name, dtype)

    def call(self, y_true, y_pred):
        shape = tuple(y_pred.shape)
        if len(shape) != 4 or shape[2] != shape[3] + 1:
            raise ValueError(
                f"ChainLoss: y_pred must have shape (B, T, K + 1, K); received {shape}."
            )
        K = shape[-1]
        y_true = ops.cast(y_true, "int32")
        y = ops.one_hot(y_true, K, dtype=y_pred.dtype)  # zeros of what is ignored
        start = ops.one_hot(ops.full_like(y_true[:, 0], K), K + 1, dtype=y_pred.dtype)
        losses = keras.layers.RNN(_ChainCell(K, dtype=y_pred.dtype), return_sequences=True)(
            ops.concatenate([y_pred, y[:, :, None]], axis=2),
            initial_state=[BANNED_LOGIT * (1 - start), start],
            mask=ops.not_equal(y_true, self.ignore_class),
        )
        return losses[:, :, 0]


class _ChainCell(keras.layers.Layer):
    """A step of `ChainLoss`: potentials and the one-hot tag, (B, K + 2, K), to (B, 1) losses.

    The states are (B, K + 1): log p(the tags so far end with i), and the one-hot y(t-1).
    """

    def __init__(self, num_tags, **kwargs):
        super().__init__(**kwargs)
        self.state_size = [num_tags + 1, num_tags + 1]
        self.output_size = 1

    def call(self, inputs, states):
        (log_alpha, last), potentials, y = states, inputs[:, :-1], inputs[:, -1]
        ahead = ops.logsumexp(log_alpha[:, :, None] + potentials, axis=1)  # (B, K)
        log_z = ops.logsumexp(ahead, axis=1, keepdims=True)
        chosen = ops.einsum("bi,bij,bj->b", last, potentials, y)[:, None]
        log_alpha = ops.pad(ahead - log_z, [(0, 0), (0, 1)], constant_values=BANNED_LOGIT)
        return log_z - chosen, [log_alpha, ops.pad(y, [(0, 0), (0, 1)])]

"""A student that learns from its teacher beside its labels."""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.masks import padding_mask
from seqkeras.models.attention_weights_head import AttentionWeightsHead
from seqkeras.models.hidden_state_head import HiddenStateHead
from seqkeras.models.with_heads import WithHeads, serialize

SOFT = ("kl", "mse")
LEAST = 1e-9  # of a probability under the logarithm
LOGITS = "teacher_logits"  # the input of logits that were computed before


@keras.saving.register_keras_serializable("seqkeras")
class Distillation(keras.Model):
    """A student's answers, and their distance from the teacher's.

        labels    = s, the student's logits
        soft      = T^2 sum_v p(v) log (p(v) / q(v)),  p = softmax(t / T),  q = softmax(s / T)
                    with "mse": mean over v of ((t(v) - s(v)) / scale)^2
        hidden    = mean over pairs (m, n), real tokens and D of (W_m h_m + b_m - h_n)^2
        attention = mean over pairs (m, n), heads and real tokens of
                    sum_s a_n(s) log (a_n(s) / a_m(s))

    Notation: t are the teacher's logits; h_m, a_m are the student's hidden states and attention
    weights, h_n, a_n the teacher's. TinyBERT adds up its pairs, where this is their mean, and takes
    the squared difference of attention before the softmax; the divergence is MiniLM's.

    The distances are outputs, so that weights of rows and of losses count for them as for labels:

        model = Distillation(student, teacher, hidden=[(1, 2), (2, 4)])
        losses = {"labels": SmoothedCrossEntropy(0.0), "soft": DistanceLoss()}
        losses["hidden"] = DistanceLoss()
        model.compile("adam", losses, loss_weights={"labels": 0.1, "soft": 0.9, "hidden": 1.0})
        model.fit(inputs, {"labels": labels, "soft": zeros, "hidden": zeros})
        model.student.save("student.keras")

    Args:
        student: a model with one output; with pairs a `WithHeads`.
        teacher: a model with one output of the same shape, which does not learn; with pairs a
            `WithHeads`. None, if its logits are always among the inputs.
        hidden: pairs of layers whose hidden states are compared, the student's and the teacher's,
            from 0, what enters the first block.
        attention: pairs of blocks whose attention weights are compared, from 1.
        temperature: T.
        soft: "kl", or "mse", which needs no temperature.
        scale: scale of "mse", a deviation of what is predicted.

    Call arguments (one dictionary):
        the student's inputs, and the teacher's if it is called.
        teacher_logits: (B, V) or (B, T, V), what the teacher answers, if that was computed before.

    Returns:
        A dictionary of "labels" (B, V) or (B, T, V); "soft" (B,) or (B, T); and, with pairs,
        "hidden" and "attention" (B,).

    Raises:
        ValueError: if temperature or scale is not positive, soft is unknown, there are pairs and no
            two `WithHeads`, the heads of compared blocks differ in number, or there is neither a
            teacher nor its logits.

    Reference: Hinton et al. 2015, section 2, https://arxiv.org/abs/1503.02531; "mse": Tang et al.
    2019, section 3.2, https://arxiv.org/abs/1903.12136; hidden: Jiao et al. 2020, "TinyBERT",
    section 3.1, equations 8 and 9, https://arxiv.org/abs/1909.10351; attention: Wang et al. 2020,
    "MiniLM", section 3.1, https://arxiv.org/abs/2002.10957

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from seqkeras.models import Distillation
        >>> x = keras.Input((4,), name="x")
        >>> student = keras.Model({"x": x}, keras.layers.Dense(3, kernel_initializer="zeros")(x))
        >>> inputs = {"x": np.ones((1, 4)), "teacher_logits": np.zeros((1, 3))}
        >>> outputs = Distillation(student)(inputs)
        >>> tuple(outputs["labels"].shape), float(outputs["soft"][0])  # equal answers: no distance
        ((1, 3), 0.0)
    """

    def __init__(
        self,
        student: keras.Model,
        teacher: keras.Model | None = None,
        hidden: Sequence[tuple[int, int]] = (),
        attention: Sequence[tuple[int, int]] = (),
        temperature: float = 2.0,
        soft: str = "kl",
        scale: float = 1.0,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)  # the teacher's logits stay in float32
        if temperature <= 0 or scale <= 0 or soft not in SOFT:
            raise ValueError(
                f"Distillation: temperature and scale must be positive, and soft one of {SOFT}; "
                f"received {temperature}, {scale} and {soft!r}."
            )
        self.student, self.teacher = student, teacher
        self.hidden, self.attention = _pairs(hidden), _pairs(attention)
        self.temperature, self.soft, self.scale = temperature, soft, scale
        if teacher is not None:
            teacher.trainable = False
        self.compared = self.compared_teacher = None
        if self.hidden or self.attention:
            self._require_encoders()
            self._compare()

    @property
    def encoder(self):
        """The encoder of the student; the student may have none."""
        return self.student.encoder

    def _require_encoders(self):
        for name, model in (("student", self.student), ("teacher", self.teacher)):
            if not isinstance(model, WithHeads):
                raise ValueError(
                    f"Distillation: the {name} must be a WithHeads, whose layers are compared; "
                    f"received a {type(model).__name__}."
                )
        heads = [model.encoder.config["num_heads"] for model in (self.student, self.teacher)]
        if self.attention and heads[0] != heads[1]:
            raise ValueError(
                "Distillation: the student must have as many attention heads as the teacher, "
                f"{heads[1]}; received {heads[0]}."
            )

    def _compare(self):
        """Add to both models a head for each of the layers that are compared."""
        policy, dim = self.dtype_policy, self.teacher.encoder.hidden_dim
        heads, others = dict(self.student.heads), {}
        for own_layer, layer in self.hidden:
            name = f"hidden_{own_layer}_{layer}"
            heads[name] = HiddenStateHead(own_layer, dim, dtype=policy, name=name)
            others[name] = HiddenStateHead(layer, name=name)
        for own_block, block in self.attention:
            name = f"attention_{own_block}_{block}"
            heads[name] = AttentionWeightsHead(own_block, dtype=policy, name=name)
            others[name] = AttentionWeightsHead(block, name=name)
        self.compared = WithHeads(
            self.student.encoder, heads, self.student.frozen, self.student.pooling
        )
        self.compared_teacher = WithHeads(self.teacher.encoder, others, frozen=True)

    def build(self, inputs_shape=None):
        for model in (self.student, self.teacher, self.compared, self.compared_teacher):
            if model is not None and not model.built:
                model.build(None)

    def call(self, inputs, training=False):
        inputs = dict(inputs)
        logits = inputs.pop(LOGITS, None)
        if logits is None:
            if self.teacher is None:
                raise ValueError(
                    "Distillation: there must be a teacher, or its logits as the input "
                    f"{LOGITS!r}; received neither."
                )
            logits = _only(self.teacher(inputs, training=False))
        if self.compared is None:
            student = _only(self.student(inputs, training=training))
            return {"labels": student, "soft": self._soft(student, logits)}
        actual = self.compared(inputs, training=training)
        wanted = self.compared_teacher(inputs, training=False)
        student = actual[next(iter(self.student.heads))]
        outputs = {"labels": student, "soft": self._soft(student, logits)}
        real = self._real(inputs)
        for kind, distance in (("hidden", _squared), ("attention", _divergence)):
            if pairs := getattr(self, kind):
                names = [f"{kind}_{own_layer}_{layer}" for own_layer, layer in pairs]
                distances = [distance(wanted[name], actual[name]) for name in names]  # (B, T)
                outputs[kind] = _mean_of_rows(sum(distances) / len(distances), real)
        return outputs

    def _soft(self, student, logits):
        """Return the distance over the last axis."""
        dtype = keras.backend.result_type(student.dtype, logits.dtype, "float32")
        student, logits = ops.cast(student, dtype), ops.cast(logits, dtype)
        if self.soft == "mse":
            return ops.mean(ops.square((logits - student) / self.scale), axis=-1)
        log_p, log_q = (ops.log_softmax(scores / self.temperature) for scores in (logits, student))
        return self.temperature**2 * ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)

    @staticmethod
    def _real(inputs):
        """Return (B, T) booleans, which tokens are no padding."""
        token_ids = inputs["token_ids"]
        if inputs.get("lengths") is None:
            return ops.ones_like(token_ids, dtype="bool")
        return padding_mask(inputs["lengths"], ops.shape(token_ids)[1])

    def get_config(self):
        return {
            **super().get_config(),
            "student": serialize(self.student),
            "teacher": None if self.teacher is None else serialize(self.teacher),
            "hidden": self.hidden,
            "attention": self.attention,
            "temperature": self.temperature,
            "soft": self.soft,
            "scale": self.scale,
        }

    @classmethod
    def from_config(cls, config):
        models = {
            name: config[name] and keras.saving.deserialize_keras_object(config[name])
            for name in ("student", "teacher")
        }
        return cls(**{**config, **models})


def _pairs(pairs):
    return [[*pair] for pair in pairs]


def _only(outputs):
    """Return the output of a model that has one."""
    if isinstance(outputs, dict):
        [outputs] = outputs.values()
    return outputs


def _squared(wanted, actual):
    return ops.mean(ops.square(wanted - actual), axis=-1)


def _divergence(wanted, actual):
    """Return (B, T), the mean over heads of the divergence of their weights (B, N, T, T)."""
    logs = [ops.log(ops.maximum(weights, LEAST)) for weights in (wanted, actual)]
    return ops.mean(ops.sum(wanted * (logs[0] - logs[1]), axis=-1), axis=1)


def _mean_of_rows(distances, real):
    """Return (B,), the means over the real tokens of (B, T)."""
    counts = ops.sum(ops.cast(real, distances.dtype), axis=1)
    return ops.sum(ops.where(real, distances, 0), axis=1) / ops.maximum(counts, 1)

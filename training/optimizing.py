"""The optimizer and its learning rate, as the options say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras

from seqkeras import optimizers
from seqkeras.learning_rates import Noam, WarmUp

if TYPE_CHECKING:
    from seqkeras.training.options import FitOptions

KINDS = {
    "adam": optimizers.Adam,
    "adamw": optimizers.AdamW,
    "sgd": optimizers.SGD,
    "lion": optimizers.Lion,
    "adafactor": optimizers.Adafactor,
    "keras-adam": keras.optimizers.Adam,
}


def make_optimizer(
    options: FitOptions, num_steps: int, rates: Sequence[Any] | None = None
) -> keras.optimizers.Optimizer:
    """Return the optimizer of a training of so many steps.

    Args:
        options: a `seqkeras.training.options.FitOptions`.
        rates: learning rates of single variables, in the form that `seqkeras.optimizers` takes.
    """
    arguments = {"global_clipnorm": options.clip_norm}
    if rates is not None:
        arguments["rates"] = rates
    betas = {"beta_1": options.beta1, "beta_2": options.beta2}
    arguments |= {name: value for name, value in betas.items() if value is not None}
    if options.weight_decay is not None:
        arguments["weight_decay"] = options.weight_decay
    if options.gradient_accumulation > 1:
        arguments["gradient_accumulation_steps"] = options.gradient_accumulation
    if options.ema is not None:
        arguments |= {"use_ema": True, "ema_momentum": options.ema}
    if options.optimizer == "adafactor":
        arguments["relative_step"] = False  # the rate is the schedule's
    return KINDS[options.optimizer](learning_rate(options, num_steps), **arguments)


def learning_rate(
    options: FitOptions, num_steps: int
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Return the schedule; each grows linearly over the warm-up.

    cosine        falls along half a cosine to the last rate, m + (r - m) (1 + cos(pi t)) / 2
    linear        falls along a line to the last rate
    inverse-root  falls as the root of the step
    noam          the same, times D^-0.5 warmup^-0.5: the learning rate is the paper's factor
    constant      stays
    """
    rate, warmup = options.learning_rate, options.warmup_steps
    if options.warmup_share is not None:
        warmup = round(options.warmup_share * num_steps)
    warmup_steps = min(warmup, num_steps // 2)
    last = options.last_learning_rate or 0.0
    if options.schedule == "cosine":
        return keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=0.0 if warmup_steps else rate,
            decay_steps=num_steps - warmup_steps,
            alpha=last / rate,
            warmup_target=rate if warmup_steps else None,
            warmup_steps=warmup_steps,
        )
    if options.schedule == "linear":
        fall = keras.optimizers.schedules.PolynomialDecay(rate, num_steps - warmup_steps, last)
        return WarmUp(rate, warmup_steps, fall)
    if options.schedule == "constant":
        return WarmUp(rate, warmup_steps)
    peak = max(1, warmup)
    if options.schedule == "noam":
        return Noam(options.hidden_dim, peak, rate)
    return Noam(1, peak, rate * peak**0.5)

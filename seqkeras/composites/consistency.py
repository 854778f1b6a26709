"""What the parts of a `Network` must agree on, tried out on one step of small random numbers."""

import contextlib
import re

import keras
import numpy as np
from keras import ops

from seqkeras.composites.recurrent import mask_biases

ROWS = 2
ALWAYS_RIGHT = "Zeros in masked_gates with True in masked_copies are right for every network."


def require_entries(network):
    """Raise a ValueError unless `masked_gates` and `masked_copies` have entries that exist."""
    for name, allowed, kind in (
        ("masked_gates", (-1, 0, 1), "for each gate 1, -1 or 0"),
        ("masked_copies", (True, False), "for each state True or False"),
    ):
        entries = getattr(network, name)
        listed = isinstance(entries, tuple | list) and len(entries) > 0
        if not listed or any(entry not in allowed for entry in entries):
            raise ValueError(
                f"{who(network)}: {name} must be a tuple that holds {kind}; received {entries!r}."
            )


def require_consistent(network, units, dtype):
    """Raise a ValueError if the parts of a network do not fit together.

    One step is taken: `step`, `gradients` and `recurrent_gradients` must take and return as many
    gates and states as `masked_gates` and `masked_copies` have entries, and a masked step must keep
    the states that are not copied.

    Args:
        network: a `seqkeras.composites.Network`.
        units: the size of its states, U.
        dtype: the dtype of the step.
    """
    draw = np.random.default_rng(0).uniform
    num_gates, num_states = len(network.masked_gates), len(network.masked_copies)
    with _outside_graphs():
        inputs, recurrent = (
            ops.convert_to_tensor(draw(-1, 1, (ROWS, num_gates * units)), dtype) for _ in range(2)
        )
        states = [
            ops.convert_to_tensor(draw(-1, 1, (ROWS, units)), dtype) for _ in range(num_states)
        ]
        new, saved = _stepped(network, inputs, recurrent, states)
        _require_gradients(network, new, saved)
        masked, _ = network.step(
            inputs + mask_biases(network, units, dtype), recurrent, list(states)
        )
        _require_kept(network, masked, states)


def _stepped(network, inputs, recurrent, states):
    """Return the new states and what is saved, after a proof that they are as many as they
    should be."""
    received = (
        "masked_gates must have one entry for each gate, and masked_copies one for each state; "
        f"received masked_gates={network.masked_gates!r} and "
        f"masked_copies={network.masked_copies!r}"
    )
    try:
        result = network.step(inputs, recurrent, list(states))
    except Exception as error:
        raise ValueError(
            f"{who(network)}: {received}, with which step raises {_short(error)}"
        ) from error
    new, saved = _pair(network, "step", result, "(new states, saved)")
    sizes = [tuple(state.shape) for state in states]
    shapes = [tuple(getattr(state, "shape", ())) for state in new]
    if shapes != sizes:
        raise ValueError(
            f"{who(network)}: {received}. step must then return new states of shapes {sizes}, "
            f"(batch, units) each; received {shapes}."
        )
    return new, saved


def _require_gradients(network, new, saved):
    def called(name, given, *args):
        try:
            return getattr(network, name)(*args)
        except Exception as error:
            raise ValueError(
                f"{who(network)}: {name} raises {_short(error)} It takes {given} that step "
                f"saves, {len(saved)} here."
            ) from error

    num_states = len(network.masked_copies)
    result = called(
        "gradients",
        f"a list of the gradients by the new states, {num_states} here, and the list",
        list(new),
        saved,
    )
    gates, by_states = _pair(
        network, "gradients", result, "(gradients by the gates, by the old states)"
    )
    _require_list(network, "gradients", "gate", gates, new[0], network.masked_gates)
    _require_list(network, "gradients", "old state", by_states, new[0], network.masked_copies)
    if network.recurrent_gradients is not None:
        by_recurrent = called(
            "recurrent_gradients", "the gradients by the gates and the list", gates, saved
        )
        _require_list(
            network, "recurrent_gradients", "gate", by_recurrent, new[0], network.masked_gates
        )


def _require_list(network, name, part, gradients, like, entries):
    """Raise a ValueError unless there is a gradient for each of the entries."""
    shape = tuple(like.shape)
    listed = isinstance(gradients, tuple | list)
    may_be_none = " or None" if part == "old state" else ""
    if listed and len(gradients) == len(entries):
        fits = all(
            (bool(may_be_none) and gradient is None)
            or tuple(getattr(gradient, "shape", ())) == shape
            for gradient in gradients
        )
        if fits:
            return
    received = (
        f"a list of {len(gradients)}: {[tuple(getattr(g, 'shape', ())) or g for g in gradients]}"
        if listed
        else f"one {type(gradients).__name__}"
    )
    raise ValueError(
        f"{who(network)}: {name} must return a list with one gradient for each {part}, "
        f"{len(entries)} of shape {shape}{may_be_none}; received {received}."
    )


def _require_kept(network, masked, states):
    """Raise a ValueError unless a masked step keeps the states that it does not copy."""
    for index, copied in enumerate(network.masked_copies):
        if copied:
            continue
        largest = ops.max(ops.abs(masked[index] - states[index]))
        difference = ops.convert_to_numpy(ops.cast(largest, "float32"))
        half = keras.backend.standardize_dtype(states[index].dtype) in ("float16", "bfloat16")
        if not difference <= (1e-2 if half else 1e-5):
            raise ValueError(
                f"{who(network)}: a masked step must keep every state. With masked_gates="
                f"{tuple(network.masked_gates)!r} it changes state {index} by "
                f"{float(difference):.2g}, and masked_copies={tuple(network.masked_copies)!r} does "
                f"not copy it. {ALWAYS_RIGHT}"
            )


def _pair(network, name, result, expected):
    if not isinstance(result, tuple | list) or len(result) != 2:
        many = f" of {len(result)}" if isinstance(result, tuple | list) else ""
        raise ValueError(
            f"{who(network)}: {name} must return a pair, {expected}; received one "
            f"{type(result).__name__}{many}."
        )
    return result


def _short(error):
    """Return an error in one line that ends with a full stop."""
    lines = str(error).strip().splitlines() or [""]
    told = re.sub(r"\{\{.*?\}\} | \[Op:.*", "", lines[0])  # TensorFlow's names of nodes
    return f"{type(error).__name__}: {told.rstrip('.')}."


def _outside_graphs():
    """Return a context that computes numbers, even while a function is traced."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.init_scope()
    if keras.backend.backend() == "jax":
        import jax

        return jax.ensure_compile_time_eval()
    return contextlib.nullcontext()


def who(network):
    return f'Network "{network.name}"'

"""Checks of the dictionary of a model's inputs."""

from collections.abc import Mapping

import numpy as np

from seqkeras.shapes import fits
from seqkeras.values import known_numbers

SOURCE = ["token_ids", "lengths"]  # what an encoder reads
SOURCE_OF_FRAMES = ["frames", "lengths"]


def require_inputs(model, inputs, required, optional=(), choices=False):
    """Raise a ValueError with every reason why a model can not read its inputs.

    Args:
        model: the model that errors name.
        inputs: what the model is called with.
        required: names that must be among them.
        optional: names that may be.
        choices: whether "token_ids" may be (B, C, T) too.

    Where there are "lengths", "segment_ids" and "target_ids", they are of the "token_ids": one
    number for each sequence, from 0 to T, one for each token, and a target for each sequence.
    "prefix_lengths" are as lengths, an "order" as segment_ids. They may also be of "frames",
    (B, T, F), whose F is the model's `source_features`.
    """
    who = type(model).__name__
    if not isinstance(inputs, Mapping):
        raise ValueError(
            f"{who}: inputs must be a dictionary of {[*required, *optional]}; "
            f"received {type(inputs).__name__}."
        )
    problems = []
    missing = [name for name in required if inputs.get(name) is None]
    if missing:
        problems.append(f"inputs must hold {missing}; received {sorted(inputs)}.")
    unknown = [name for name in inputs if name not in (*required, *optional)]
    if unknown:
        known = [*required, *optional]
        problems.append(
            f"inputs must be among {known}; received {unknown}, which the model does not read."
        )
    if inputs.get("token_ids") is not None:
        problems += _shape_problems(inputs, choices)
    elif inputs.get("frames") is not None:
        problems += _frame_problems(inputs, model.source_features)
    if problems:
        raise ValueError(f"{who}: {' '.join(problems)}")


def _shape_problems(inputs, choices):
    shape = tuple(np.shape(inputs["token_ids"]))
    axes = ("batch", *(["choices"] if choices and len(shape) == 3 else []), "length")
    if len(shape) != len(axes):
        return [f"token_ids must have shape ({', '.join(axes)}); received {shape}."]
    return _problems_of("token_ids", shape, axes, inputs)


def _frame_problems(inputs, features):
    shape = tuple(np.shape(inputs["frames"]))
    if not fits(shape, (None, None, features)):
        return [f"frames must have shape (batch, length, {features}); received {shape}."]
    return _problems_of("frames", shape[:2], ("batch", "length"), inputs)


def _problems_of(source, shape, axes, inputs):
    problems = []
    for name, expected, meaning in (
        ("lengths", shape[:-1], "the real steps of each sequence"),
        ("segment_ids", shape, "the text of each token"),
        ("prefix_lengths", shape[:-1], "the prefix of each sequence"),
        ("order", shape, "the order of the tokens"),
        ("target_ids", (shape[0], None), "the target of each sequence"),
    ):
        received = expected if inputs.get(name) is None else tuple(np.shape(inputs[name]))
        if not fits(received, expected):
            problems.append(
                f"{name} must have shape ({', '.join(axes[: len(expected)])}), {meaning} of "
                f"{source} {shape}; received {received}."
            )
    lengths = None if inputs.get("lengths") is None else known_numbers(inputs["lengths"])
    if not problems and lengths is not None:
        problems = _length_problems(lengths, shape[-1])
    return problems


def _length_problems(lengths, longest):
    if lengths.dtype.kind not in "iu":
        return [f"lengths must be integers; received {lengths.dtype}."]
    wrong = lengths[(lengths < 0) | (lengths > (np.inf if longest is None else longest))]
    if not wrong.size:
        return []
    return [f"lengths must be from 0 to {longest}, the length; received {wrong[0]}."]

"""What the dictionary must hold that a model is called with."""

from collections.abc import Mapping

import numpy as np


def require_inputs(model, inputs, required, optional=(), choices=False):
    """Raise a ValueError with every reason why a model can not read its inputs.

    Args:
        model: for its name.
        inputs: what the model is called with.
        required: names that must be among them.
        optional: names that may be.
        choices: whether "token_ids" may be (B, C, T) too.

    Where there are "lengths" and "segment_ids", they are of the "token_ids": one number for each
    sequence, and one for each token.
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
        problems.append(f"inputs must be among {known}; received {unknown}, which nobody reads.")
    if inputs.get("token_ids") is not None:
        problems += _shape_problems(inputs, choices)
    if problems:
        raise ValueError(f"{who}: {' '.join(problems)}")


def _shape_problems(inputs, choices):
    shape = tuple(np.shape(inputs["token_ids"]))
    axes = ("batch", *(["choices"] if choices and len(shape) == 3 else []), "length")
    if len(shape) != len(axes):
        return [f"token_ids must have shape ({', '.join(axes)}); received {shape}."]
    problems = []
    for name, rank, meaning in (
        ("lengths", len(axes) - 1, "the real steps of each sequence"),
        ("segment_ids", len(axes), "the text of each token"),
    ):
        received = shape if inputs.get(name) is None else tuple(np.shape(inputs[name]))
        pairs = zip(received, shape)
        fits = all(one == other or None in (one, other) for one, other in pairs)
        if inputs.get(name) is not None and not (fits and len(received) == rank):
            problems.append(
                f"{name} must have shape ({', '.join(axes[:rank])}), {meaning} of token_ids "
                f"{shape}; received {received}."
            )
    return problems

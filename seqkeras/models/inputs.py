"""What the dictionary must hold that a model is called with."""

from collections.abc import Mapping

import numpy as np


def require_inputs(model, inputs, required, optional=()):
    """Raise a ValueError with every reason why a model can not read its inputs.

    Args:
        model: for its name.
        inputs: what the model is called with.
        required: names that must be among them.
        optional: names that may be.

    Where there are "lengths", they are of the "token_ids": one number for each sequence.
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
    if "token_ids" not in missing and inputs.get("lengths") is not None:
        axes = ("batch", "choices")[: len(np.shape(inputs["token_ids"])) - 1]
        shape = tuple(np.shape(inputs["lengths"]))
        if len(shape) != len(axes):
            problems.append(
                f"lengths must have shape ({', '.join(axes)}), the real steps of each sequence; "
                f"received {shape}."
            )
    if problems:
        raise ValueError(f"{who}: {' '.join(problems)}")

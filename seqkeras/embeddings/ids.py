"""Checks of integers that index a table."""

import keras
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from seqkeras.values import known_numbers


def require_ids(layer, name, ids, limit_name, limit):
    """Raise a ValueError unless these are integers that index a table of `limit` rows.

    While a graph is traced the numbers are not known; what a lookup beyond the table gives there
    differs from backend to backend, so `seqkeras.models.token_model` looks at them before. Nor is
    the type known while Keras builds a model for several replicas: it takes the mean of their
    inputs, whose shapes alone count there.
    """
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if not keras.backend.is_int_dtype(dtype) and not in_symbolic_scope():
        raise ValueError(f"{type(layer).__name__}: {name} must be integers; received {dtype}.")
    known = known_numbers(ids)
    if known is not None and known.size and (known.min() < 0 or known.max() >= limit):
        wrong = known.min() if known.min() < 0 else known.max()
        raise ValueError(
            f"{type(layer).__name__}: {name} must be from 0 to {limit - 1}, as {limit_name} is "
            f"{limit}; received {wrong}."
        )

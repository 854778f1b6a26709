"""`repr` of answers in one line."""

from dataclasses import fields
from typing import Any


def with_shapes(answer: Any) -> str:
    """Return the `repr` of a dataclass, with arrays by type and shape, without empty fields."""
    values = ((field.name, getattr(answer, field.name)) for field in fields(answer))
    parts = [f"{name}={_short(value)}" for name, value in values if not _is_empty(value)]
    return f"{type(answer).__name__}({', '.join(parts)})"


def _is_empty(value):
    return value is None or (isinstance(value, (tuple, dict)) and not value)


def _short(value):
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_short(item)}' for key, item in value.items())}}}"
    if hasattr(value, "shape"):
        dtype = value.dtype if hasattr(value, "dtype") else value.data_type()
        shape = value.shape() if callable(value.shape) else value.shape
        return f"<{dtype} {tuple(shape)}>"
    return repr(value)

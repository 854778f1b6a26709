"""Tensors of the Open Inference Protocol: as JSON, flat or nested, and as bytes.

In bytes a tensor is row-major and little-endian; a string is its length in 4 bytes, then its UTF-8.
"""

import struct
from typing import Any

import numpy as np

from ..checks import shown
from .body import text_of
from .http_refusal import HttpRefusal
from .signature import FLOAT, STRING, Column

BYTES = "BYTES"
DATA_TYPES = {"object": BYTES, "float32": "FP32", "int32": "INT32", "int64": "INT64"}
NUMBERS = {
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "BOOL": "|b1",
}


def from_json(data: Any, datatype: Any, shape: tuple[int, ...], column: Column) -> np.ndarray:
    """Return the array of a tensor in JSON.

    Args:
        data: flat or nested lists.
        datatype: the protocol's name of its type.
        shape: its shape.
        column: the input that it is.

    Raises:
        HttpRefusal: if it is no such tensor.
    """
    _require(datatype, column)
    if not isinstance(data, list):
        raise HttpRefusal(400, f"{column.name}: data must be a list; received {shown(data)}")
    flat = _flat(data)
    kinds = {STRING: (str,), FLOAT: (int, float)}.get(column.dtype, (int,))
    for value in flat:
        if not isinstance(value, kinds):
            raise HttpRefusal(
                400, f"{column.name}: data must be of {datatype}; received {shown(value)}"
            )
    return _array(flat, shape, column)


def from_binary(data: bytes, datatype: Any, shape: tuple[int, ...], column: Column) -> np.ndarray:
    """Return the array of a tensor in bytes; see `from_json`."""
    _require(datatype, column)
    if column.dtype == STRING:
        return _array(_strings(data, column.name), shape, column)
    kind = np.dtype(NUMBERS[datatype])
    if len(data) % kind.itemsize:
        raise HttpRefusal(
            400, f"{column.name}: {len(data)} bytes are no whole number of {datatype}"
        )
    return _array(np.frombuffer(data, kind), shape, column)


def as_binary(array: np.ndarray) -> bytes:
    """Return an array as bytes."""
    if array.dtype != object:
        return array.astype(array.dtype.newbyteorder("<")).tobytes()
    parts = []
    for text in array.reshape(-1):
        encoded = text.encode(errors="replace")  # no lone surrogate fits UTF-8
        parts += [struct.pack("<I", len(encoded)), encoded]
    return b"".join(parts)


def _require(datatype, column):
    known = tuple(NUMBERS)
    if column.dtype != FLOAT:
        known = (BYTES if column.dtype == STRING else DATA_TYPES[column.dtype],)
    if datatype not in known:
        expected = ", ".join(known)
        raise HttpRefusal(
            400, f"{column.name}: datatype must be {expected}; received {shown(datatype)}"
        )


def _array(flat, shape, column):
    size = int(np.prod(shape, dtype=object))
    if size != len(flat):
        raise HttpRefusal(
            400, f"{column.name}: shape {list(shape)} has {size} values; received {len(flat)}"
        )
    array = np.empty(len(flat), object if column.dtype == STRING else column.dtype)
    try:
        with np.errstate(over="ignore"):
            array[:] = flat
    except OverflowError as error:
        raise HttpRefusal(400, f"{column.name}: a number does not fit {column.dtype}") from error
    return array.reshape(shape)


def _flat(data):
    if not any(isinstance(value, list) for value in data):
        return data
    return [
        inner for value in data for inner in (_flat(value) if isinstance(value, list) else [value])
    ]


def _strings(data, name):
    strings, offset = [], 0
    while offset < len(data):
        start = offset + 4
        if start > len(data):
            raise HttpRefusal(400, f"{name}: the bytes end within the length of a string")
        [size] = struct.unpack_from("<I", data, offset)
        offset = start + size
        if offset > len(data):
            raise HttpRefusal(400, f"{name}: the bytes end within a string of {size} bytes")
        strings.append(text_of(data[start:offset]))
    return strings

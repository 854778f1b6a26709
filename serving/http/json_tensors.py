"""Tensors in JSON, in rows ("instances") or columns ("inputs"), as TensorFlow Serving reads them.

Errors are in the words of its source.

Reference: https://github.com/tensorflow/serving (util/json_tensor.cc)
"""

import base64
import binascii
import json
from typing import Any

import numpy as np

from ..parsing import parse_request
from .body import text_of
from .http_refusal import HttpRefusal
from .signature import DEFAULT, FLOAT, STRING, Column, Signature, floats, require_signature

BASE64 = "b64"
MOST_SHOWN = 200  # characters of a value
KINDS = {type(None): "Null", dict: "Object", list: "Array", str: "String"}
DATA_TYPES = {STRING: "string", "float32": "float", "int32": "int32", "int64": "int64"}


def tensors_of(
    body: bytes, signatures: dict[str, Signature], bundle: str
) -> tuple[Signature, dict[str, np.ndarray], bool]:
    """Return the signature of a request, name -> array, and whether it has the form of rows.

    Args:
        body: body of the request.
        signatures: signatures of the bundle.
        bundle: its name.

    Raises:
        HttpRefusal: if it is no such request.
    """
    content = _object(body)
    name = content.get("signature_name", DEFAULT)
    if not isinstance(name, str):
        raise _refusal(
            content, "not formatted correctly. 'signature_name' key must be a string value."
        )
    name = name or DEFAULT
    if signatures and name not in signatures:
        raise HttpRefusal(400, f'Serving signature name: "{name}" not found in signature def')
    signature = require_signature(signatures, name, bundle)
    if "instances" in content and "inputs" in content:
        raise _refusal(
            content,
            "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ",
        )
    if "instances" in content:
        return signature, _of_instances(content, signature.inputs), True
    if "inputs" in content:
        return signature, _of_inputs(content["inputs"], signature.inputs), False
    raise HttpRefusal(400, "Missing 'inputs' or 'instances' key")


def content_of(columns: dict[str, np.ndarray], in_rows: bool) -> dict[str, Any]:
    """Return the response: of a single output the values alone, of several with their names."""
    lists = {
        name: floats(array) if array.dtype.kind == "f" else array.tolist()
        for name, array in columns.items()
    }
    if not in_rows:
        return {"outputs": lists if len(lists) > 1 else next(iter(lists.values()))}
    if len(lists) == 1:
        return {"predictions": next(iter(lists.values()))}
    return {"predictions": [dict(zip(lists, row)) for row in zip(*lists.values())]}


def _object(body):
    if not body:
        raise HttpRefusal(400, "JSON Parse error: The document is empty")
    try:
        content = parse_request(text_of(body))
    except json.JSONDecodeError as error:
        message = f"JSON Parse error: {error.msg} at offset: {error.pos}"
        raise HttpRefusal(400, message) from error
    except ValueError as error:
        raise HttpRefusal(400, f"JSON Parse error: {error}") from error
    if not isinstance(content, dict):
        raise _refusal(content, "Is not object")
    return content


def _of_instances(content, columns):
    rows = content["instances"]
    if not isinstance(rows, list):
        raise _refusal(content, "Excepting 'instances' to be an list/array")
    if not rows:
        raise _refusal(content, "No values in 'instances' array")
    if not isinstance(rows[0], dict) and len(columns) > 1:
        raise HttpRefusal(
            400,
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map",
        )
    named = _is_named(rows[0])
    values = {column.name: [] for column in columns}
    for index, row in enumerate(rows):
        if named and not _is_named(row):
            message = f"Expecting object but got list at item {index} of input list"
            raise HttpRefusal(400, message)
        if not named and _is_named(row):
            message = f"Expecting value/list but got object at item {index} of input list"
            raise HttpRefusal(400, message)
        _add(values, row if named else {columns[0].name: row}, columns, index, named)
    return {column.name: _array(values[column.name], column) for column in columns}


def _add(values, row, columns, index, named):
    """Add the values of a row to the columns."""
    declared = {column.name: column for column in columns}
    for name, value in row.items():
        where = f"Failed to process element: {index} key: {name} of 'instances' list. Error: "
        if not named:
            where = f"Failed to process element: {index} of 'instances' list. Error: "
        try:
            if name not in declared:
                raise HttpRefusal(400, f"JSON object: does not have named input: {name}")
            value = _checked(value, declared[name])
            before = values[name][0] if values[name] else value
            if _size(before) != _size(value):
                raise HttpRefusal(
                    400, f"Expecting tensor size: {_size(before)} but got: {_size(value)}"
                )
            if _shape(before) != _shape(value):
                expected, received = (_written(_shape(array)) for array in (before, value))
                raise HttpRefusal(400, f"Expecting shape {expected} but got: {received}")
        except HttpRefusal as refusal:
            raise HttpRefusal(400, f"{where}INVALID_ARGUMENT: {refusal.message}") from refusal
        values[name].append(value)
    if set(row) != set(declared):
        raise HttpRefusal(
            400,
            f"Failed to process element: {index} of 'instances' list. JSON object: {_json(row)} "
            f"must only have keys: {','.join(sorted(declared))}",
        )


def _of_inputs(value, columns):
    if not isinstance(value, dict) or _is_base64(value):
        if len(columns) > 1:
            raise HttpRefusal(
                400,
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map",
            )
        value = {columns[0].name: value}
    for column in columns:
        if column.name not in value:
            message = f"Missing named input: {column.name} in 'inputs' object."
            raise HttpRefusal(400, message)
    return {column.name: _array(_checked(value[column.name], column), column) for column in columns}


def _checked(value, column: Column):
    """Return a value with base64 decoded; all lists of a level must have one size."""
    shape = _shape(value)

    def visit(value, level):
        if not isinstance(value, list):
            if level != len(shape):
                raise HttpRefusal(
                    400,
                    f"JSON Value: {_json(value)} found at incorrect level: {level + 1} in the JSON "
                    f"DOM. Expected at level: {len(shape)}",
                )
            return _scalar(value, column)
        if level >= len(shape):
            message = f"Encountered list at unexpected level: {level} expected < {len(shape)}"
            raise HttpRefusal(400, message)
        if len(value) != shape[level]:
            raise HttpRefusal(
                400,
                f"Encountered list at unexpected size: {len(value)} at level: {level} expected "
                f"size: {shape[level]}",
            )
        return [visit(inner, level + 1) for inner in value]

    return visit(value, 0)


def _scalar(value, column):
    if column.dtype == STRING:
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            return _decoded(value)
    elif isinstance(value, _numbers(column)) and not isinstance(value, bool):
        return value
    kind = KINDS.get(type(value), "Number")
    kind = str(value) if isinstance(value, bool) else kind
    raise HttpRefusal(
        400,
        f"JSON Value: {_json(value)} Type: {kind} is not of expected type: "
        f"{DATA_TYPES[column.dtype]}",
    )


def _numbers(column):
    return (int, float) if column.dtype == FLOAT else (int,)


def _decoded(value):
    if not _is_base64(value):
        raise HttpRefusal(
            400, f"JSON Value: {_json(value)} not formatted correctly for base64 data"
        )
    try:
        return text_of(base64.b64decode(value[BASE64], validate=True))
    except binascii.Error as error:
        raise HttpRefusal(400, "Unable to base64 decode") from error


def _array(value, column):
    dtype = object if column.dtype == STRING else column.dtype
    array = np.empty(_shape(value), dtype)
    if array.size:
        with np.errstate(over="ignore"):
            try:
                array[...] = value
            except OverflowError as error:
                message = (
                    f"Cannot convert JSON value: {_json(value)} to {DATA_TYPES[column.dtype]} "
                    "without loss of precision."
                )
                raise HttpRefusal(400, message) from error
    return array


def _shape(value):
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return tuple(shape)


def _size(value):
    return int(np.prod(_shape(value), dtype=int))


def _written(shape):
    return f"[{','.join(map(str, shape))}]"


def _is_base64(value):
    return isinstance(value, dict) and [*value] == [BASE64] and isinstance(value[BASE64], str)


def _is_named(value):
    return isinstance(value, dict) and not _is_base64(value)


def _json(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _refusal(value, message):
    return HttpRefusal(400, f"JSON Value: {_json(value)} {message}")

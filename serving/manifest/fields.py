"""JSON parsed as the fields of dataclasses and checked against their types."""

import dataclasses
import json
import sys
import types


def parse_fields(kind, value, where, problems):
    """Return the fields of dataclass `kind` found in the JSON object `value`, as a dictionary.

    Args:
        kind: a dataclass whose fields are strings, numbers, booleans, dataclasses, tuples or
            dictionaries of these; or optional ones.
        value: the parsed JSON.
        where: the path of the value, for errors; "" for the whole.
        problems: a list, to which every reason against the value is appended.
    """
    if not isinstance(value, dict):
        problems.append(f"{where or 'it'} must be an object; received {_short(value)}")
        return {}
    inside = f"{where}." if where else ""
    declared = {field.name: field for field in dataclasses.fields(kind)}
    for name, field in declared.items():
        if name not in value and _is_required(field):
            problems.append(f"{inside}{name} is missing")
    for name in value:
        if name not in declared:
            problems.append(f"{inside}{name} is unknown")
    return {
        name: _parse(field.type, value[name], f"{inside}{name}", problems)
        for name, field in declared.items()
        if name in value
    }


def _is_required(field):
    return field.default is field.default_factory is dataclasses.MISSING


def _parse(kind, value, where, problems):
    """Return the JSON `value` as a `kind`; append to `problems` if it is not one."""
    kinds = kind.__args__ if isinstance(kind, types.UnionType) else (kind,)
    if value is None and types.NoneType in kinds:
        return None
    kind, *others = (k for k in kinds if k is not types.NoneType)
    if dataclasses.is_dataclass(kind):
        arguments = parse_fields(kind, value, where, field_problems := [])
        problems.extend(field_problems)
        return None if field_problems else kind(**arguments)
    container, inner = getattr(kind, "__origin__", kind), getattr(kind, "__args__", ())
    if container is tuple and isinstance(value, list):
        if not inner:
            return tuple(value)
        return tuple(_parse(inner[0], v, f"{where}[{i}]", problems) for i, v in enumerate(value))
    if container is dict and isinstance(value, dict):
        if not inner:
            return value
        return {k: _parse(inner[1], v, f"{where}.{k}", problems) for k, v in value.items()}
    if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if type(value) not in (kind, *others):
        expected = " or ".join(_JSON_NAMES[k] for k in (container, *others))
        problems.append(f"{where} must be {expected}; received {_short(value)}")
    return value


_JSON_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    tuple: "a list",
}


def _short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"

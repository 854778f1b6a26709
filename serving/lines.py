"""Inputs of a pipeline as the command line has them: arguments, or lines of UTF-8.

A line is a text; or texts with tabs between, for a pipeline that takes several; or JSON.
"""

import json

from .checks import shown


def arguments(texts):
    """Yield where each argument stands, and its text."""
    for number, text in enumerate(texts, start=1):
        where = f"argument {number}: text"
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{where} must be UTF-8; received {text!r}.") from error
        yield where, text


def lines(stream, name):
    """Yield where each line of a binary stream stands, and its text; lines end with "\\n" only."""
    for number, line in enumerate(stream, start=1):
        where = f"{name}, line {number}: text"
        try:
            yield where, line.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            byte = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
            raise ValueError(f"{where} must be UTF-8; received {byte}.") from error


def inputs(pipeline, texts, as_json=False, **options):
    """Yield what the pipeline is given; the first that it does not take raises.

    Args:
        pipeline: as `serving.load` returns it.
        texts: as `arguments` and `lines` yield them.
        as_json: each text is JSON.
        options: as `pipeline.encode` takes them.
    """
    fields = getattr(pipeline, "fields", ())
    reads_json = as_json or getattr(pipeline, "reads_json", False)
    for where, text in texts:
        value = _from_json(text, where) if reads_json else _columns(text, fields, where)
        pipeline.encode(value, where, **options)
        yield value


def batches(values, size):
    """Yield lists of up to `size` values; those before an error still come before it."""
    batch, refusal = [], None
    try:
        for value in values:
            batch.append(value)
            if len(batch) == size:
                yield batch
                batch = []
    except ValueError as error:
        refusal = error
    if batch:
        yield batch
    if refusal:
        raise refusal


def from_json(value):
    """Return an input as pipelines take it of what JSON holds, which has no tuples.

    A text may be an object with its name, as inputs of several parts are.
    """
    if isinstance(value, dict) and set(value) == {"text"}:
        return value["text"]
    return tuple(value) if isinstance(value, list) else value


def _from_json(text, where):
    try:
        return from_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} must be JSON; received {shown(text)}: {error}.") from error


def _columns(text, fields, where):
    """Return the columns of a text as the parts of an input; choices are all further columns."""
    first, *others = text.split("\t") if fields else [text]
    if fields[1:] == ("choices",):
        return first, others
    if not others and fields[1:] in ((), ("pair",)):
        return text
    if len(others) != 1:
        raise ValueError(
            f"{where} must be {' and '.join(fields)} with a tab between; received {shown(text)}."
        )
    return first, others[0]

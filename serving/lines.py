"""Inputs of a pipeline on the command line: arguments, or lines of UTF-8.

A line is a text; texts separated by tabs, for a pipeline of several parts; or JSON. For a pipeline
that reads arrays it is JSON, or the name of a .npy, .npz or .csv file.
"""

from .checks import shown
from .parsing import parse_json

FILES = (".npy", ".npz", ".csv")  # of arrays, or rows


def arguments(texts):
    """Yield (position, text) of each argument."""
    for number, text in enumerate(texts, start=1):
        where = f"argument {number}"
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{where}: text must be UTF-8; received {text!r}.") from error
        yield where, text


def lines(stream, name):
    """Yield (position, text) of each line of a binary stream; only "\\n" ends a line."""
    for number, line in enumerate(stream, start=1):
        where = f"{name}, line {number}"
        try:
            yield where, line.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            byte = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
            raise ValueError(f"{where}: text must be UTF-8; received {byte}.") from error


def inputs(pipeline, texts, as_json=False):
    """Yield (name, input) of each input; errors use the name.

    Args:
        pipeline: as `serving.load` returns it.
        texts: as `arguments` and `lines` yield them.
        as_json: each text is JSON.
    """
    fields = getattr(pipeline, "fields", ())
    is_text = not getattr(pipeline, "reads_json", False)
    if not is_text:
        rows = getattr(pipeline, "rows", None)
        series = None if rows is None else rows.series
        yield from _arrays(texts, fields, getattr(pipeline, "num_known_rows", 0), series)
        return
    for where, text in texts:
        name = f"{where}: text"
        value = _columns(text, fields, name) if not as_json else _from_json(text, name)
        yield name, value


def _arrays(texts, fields, horizon, series):
    from .array_files import inputs_in  # imports NumPy, which not every command needs

    for where, text in texts:
        name = f"{where}: {fields[0] if fields else 'frames'}"
        if not text.endswith(FILES):
            yield name, _from_json(text, name)
            continue
        for part, value in inputs_in(text, fields, horizon, series):
            yield f"{name} of {text}{part}", value


def series_of(pipeline, given):
    """Return the name of the series that an input's rows are of; "" if the rows do not say it."""
    rows = getattr(pipeline, "rows", None)
    if rows is None or rows.series is None:
        return ""
    first = (given[pipeline.fields[0]] if isinstance(given, dict) else given)[0]
    return str(first.get(rows.series, "")) if isinstance(first, dict) else ""


def checked_inputs(pipeline, given, **options):
    """Yield the inputs, each checked; the first that the pipeline refuses raises.

    Args:
        pipeline: as `serving.load` returns it.
        given: pairs from `inputs`.
        options: of `pipeline.encode`.
    """
    for name, value in given:
        pipeline.encode(value, name, **options)
        yield value


def answered(pipeline, batch, truncate=None, **options):
    """Yield each input of a batch with its answer; the first that the pipeline refuses raises.

    Inputs are checked one by one only if the batch as a whole is refused.

    Args:
        pipeline: as `serving.load` returns it.
        batch: a list of pairs from `inputs`.
        truncate, options: of the pipeline.
    """
    truncate = {} if truncate is None else {"truncate": truncate}
    values = [value for _, value in batch]
    try:
        answers = pipeline(values, **truncate, **options)
    except ValueError:
        for before in batches(checked_inputs(pipeline, batch, **truncate), len(batch)):
            yield from zip(before, pipeline(before, **truncate, **options))
    else:
        yield from zip(values, answers)


def batches(values, size):
    """Yield lists of up to `size` values; values before an error are yielded first."""
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
    """Return a pipeline's input from JSON content, which has no tuples.

    A text may also be an object with its name, like inputs of several parts.
    """
    if isinstance(value, dict) and set(value) == {"text"}:
        return value["text"]
    return tuple(value) if isinstance(value, list) else value


def _from_json(text, name):
    try:
        return from_json(parse_json(text))
    except ValueError as error:
        raise ValueError(f"{name} must be JSON; received {shown(text)}: {error}.") from error


def _columns(text, fields, name):
    """Return the columns of a text as the parts of an input; choices take all further columns."""
    first, *others = text.split("\t") if fields[1:] else [text]
    if fields[1:] == ("choices",):
        return first, others
    if not others and fields[1:] in ((), ("pair",)):
        return text
    if len(others) != 1:
        raise ValueError(
            f"{name} must be {' and '.join(fields)} with a tab between; received {shown(text)}."
        )
    return first, others[0]

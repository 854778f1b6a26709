"""Inputs of a pipeline on the command line: arguments, or lines of UTF-8.

A line is a text; texts separated by tabs, for a pipeline of several parts; or JSON. For a pipeline
that reads arrays it is JSON, or the name of a .npy, .npz or .csv file.
"""

import os
import shlex

from .checks import shown
from .parsing import TOO_LONG, bounded_lines, parse_request

FILES = (".npy", ".npz", ".csv")  # of arrays, or rows
NAMES_END = (*FILES, ".tsv", ".txt", ".json", ".jsonl", ".parquet")  # of data, where texts are read


def arguments(texts):
    """Yield (position, text) of each argument."""
    for number, text in enumerate(texts, start=1):
        yield f"argument {number}", text


def lines(stream, name):
    """Yield (position, bytes) of each line of a binary stream; only "\\n" ends a line.

    None stands for a line that is too long.
    """
    for number, line in enumerate(bounded_lines(stream), start=1):
        yield f"{name}, line {number}", line


def text_of(line, where):
    """Return the text of an argument or of a line.

    Raises:
        ValueError: if it is too long, or not UTF-8.
    """
    if line is None:
        raise ValueError(f"{where}: text {TOO_LONG}; cut it into shorter ones.")
    try:
        if isinstance(line, bytes):
            return line.removesuffix(b"\n").removesuffix(b"\r").decode()
        line.encode()
        return line
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise ValueError(f"{where}: text must be UTF-8; received {byte}.") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: text must be UTF-8; received {line!r}.") from error


def inputs(pipeline, texts, as_json=False):
    """Yield (name, input) of each input; errors use the name.

    Args:
        pipeline: the result of `serving.load`.
        texts: as `arguments` and `lines` yield them. An argument that names a file, or has a file's
            name, is refused where texts are read; a line may be any text.
        as_json: each text is JSON.
    """
    fields = getattr(pipeline, "fields", ())
    is_text = not getattr(pipeline, "reads_json", False)
    if not is_text:
        of_table = {
            "rows": getattr(pipeline, "rows", None),
            "horizon": getattr(pipeline, "num_known_rows", 0),
            "targets": getattr(pipeline, "targets", ()),
            "each_row": getattr(pipeline, "each_row", False),
        }
        yield from _arrays(texts, fields, of_table)
        return
    for where, line in texts:
        name, text = f"{where}: text", text_of(line, where)
        if line is text:
            _require_no_file(text, where)
        value = _columns(text, fields, name) if not as_json else _from_json(text, name)
        yield name, value


def _require_no_file(text, where):
    """Raise a ValueError for an argument that is a file, or by its name is meant to be one."""
    if os.path.isfile(text):
        raise ValueError(
            f"{where}: {text} is a file, and the bundle reads texts; its lines are read from "
            f"standard input: < {shlex.quote(text)}."
        )
    if text.lower().endswith(NAMES_END) and len(text.split()) == 1:
        raise ValueError(
            f"{where}: {text}: no such file; if it is a text, give it in a line of standard input."
        )


def inputs_or_refusals(pipeline, texts, as_json=False):
    """Yield (name, input) of each input; a ValueError stands in the place of one that is none.

    Args:
        pipeline, texts, as_json: see `inputs`.
    """
    for where, line in texts:
        try:
            yield from inputs(pipeline, [(where, line)], as_json)
        except OSError as error:  # of a file that the text names
            yield where, ValueError(f"{where}: {error.filename}: {error.strerror}.")
        except ValueError as error:
            yield where, error


def _arrays(texts, fields, of_table):
    from .array_files import inputs_in  # imports NumPy, which not every command needs

    for where, line in texts:
        name, text = f"{where}: {fields[0] if fields else 'frames'}", text_of(line, where)
        if not text.endswith(FILES):
            yield name, _from_json(text, name)
            continue
        for part, value in inputs_in(text, fields, **of_table):
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
        pipeline: the result of `serving.load`.
        given: pairs from `inputs`.
        options: options of `pipeline.encode`.
    """
    for name, value in given:
        pipeline.encode(value, name, **options)
        yield value


def answered(pipeline, batch, options):
    """Return (input, answer) of each pair of a batch; a ValueError stands for a missing answer.

    Inputs are checked one by one only if the batch as a whole fails.

    Args:
        pipeline: the result of `serving.load`.
        batch: a list of pairs from `inputs`, or from `inputs_or_refusals`.
        options: options of the pipeline.
    """
    from .answering import answers_or_refusals  # brings NumPy, which not every command needs

    good = [value for _, value in batch if not isinstance(value, ValueError)]
    answers = iter(answers_or_refusals(pipeline, good, options))
    results = []
    for name, value in batch:
        answer = value if isinstance(value, ValueError) else next(answers)
        if answer is not value and isinstance(answer, ValueError):
            refusal = refusal_of(pipeline, name, value, options)  # which names the place
            answer = refusal or ValueError(f"{name}: {answer}")
        results.append((value, answer))
    return results


def refusal_of(pipeline, name, value, options):
    """Return the ValueError with which a pipeline refuses an input, or None.

    Args:
        pipeline: the result of `serving.load`.
        name, value: a pair from `inputs`, or from `inputs_or_refusals`.
        options: options of the pipeline.
    """
    from .answering import encoding_options

    if isinstance(value, ValueError):
        return value
    try:
        pipeline.encode(value, name, **encoding_options(options))
    except ValueError as error:
        return error
    return None


def batches(values, size):
    """Yield lists of up to `size` values."""
    batch = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def from_json(value):
    """Return a pipeline's input from JSON content, which has no tuples.

    A text may also be an object with its name, like inputs of several parts.
    """
    if isinstance(value, dict) and set(value) == {"text"}:
        return value["text"]
    return tuple(value) if isinstance(value, list) else value


def _from_json(text, name):
    try:
        return from_json(parse_request(text))
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

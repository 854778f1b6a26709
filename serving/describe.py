"""A bundle in words, for `python -m serving inspect`."""

import json

MOST_SHOWN = 100  # characters of an example or of a setting


def describe(manifest):
    """Return a description of a bundle as lines of aligned text."""
    return "\n".join(_align(_rows(manifest)))


def table(rows):
    """Return equally long rows of cells as lines, with the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _rows(manifest):
    """Yield (title, text) pairs; a title of "" continues the previous one."""
    size = sum(entry.bytes for entry in manifest.files.values())
    limits, defaults = manifest.limits, manifest.decoding
    yield "name", manifest.name
    yield "task", f"{manifest.task}, by the pipeline {manifest.pipeline}"
    yield "made", manifest.created
    yield "with", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    yield "size", f"{_bytes(size)} in {len(manifest.files)} files, schema {manifest.schema_version}"
    if manifest.text_prefix:
        prefix = manifest.text_prefix
        known = " ".join(prefix.values)
        yield "input", f"a {prefix.name}, {prefix.separator!r}, then the text; known: {known}"
    for example in manifest.examples[:3]:
        yield "example", example if isinstance(example, str) else _json(example)
    if len(manifest.examples) > 3:
        yield "example", f"and {len(manifest.examples) - 3} more, with --json"
    if manifest.state:
        yield "limits", f"source {limits.source_length} tokens, target {limits.target_length}"
        penalty = f"length_penalty {defaults.length_penalty:g}"
        yield "decoding", f"num_beams {defaults.num_beams}, {penalty}"
        if defaults.regex is not None:
            yield "answers", f"match {defaults.regex}"
        yield "state", ", ".join(f"{entry.name} per {entry.per}" for entry in manifest.state)
    else:
        yield "limits", f"{limits.source_length} tokens"
    for name, value in manifest.settings.items():
        yield "settings", f"{name} {_json(value)}"
    for role, file in manifest.tokenizers.items():
        yield f"{role} tokenizer", file
    for role, graph in manifest.graphs.items():
        weights = "".join(f", weights in {file}" for file in graph.weights)
        yield role, f"{graph.file}, {_bytes(manifest.files[graph.file].bytes)}{weights}"
        yield from _signature(graph)
    for name, precision in manifest.precisions.items():
        files = dict.fromkeys(file for graph in precision.graphs.values() for file in graph.files)
        size = sum(manifest.files[file].bytes for file in files)
        yield "precision", f"{name}, {_bytes(size)}"
        for figure, value in _flat(precision.figures):
            yield "", _figure(figure, value)
    for folder, signatures in manifest.saved_models.items():
        for name, signature in signatures.items():
            yield folder, name
            yield from _signature(signature)
    for title, figures in (("scores", manifest.scores), ("parity", manifest.parity)):
        for name, value in _flat(figures):
            yield title, _figure(name, value)


def _signature(signature):
    for direction, specs in (("takes", signature.inputs), ("gives", signature.outputs)):
        for spec in specs:
            yield "", f"{direction} {spec.name} {spec.dtype} ({', '.join(map(str, spec.shape))})"


def _figure(name, value):
    return f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"


def _json(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _flat(figures, above=""):
    """Yield (name, value) of nested dicts, the names joined with dots."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _align(rows):
    rows = list(rows)
    width = max(len(title) for title, _ in rows)
    before = None
    for title, text in rows:
        yield f"{'' if title == before else title:<{width}}  {text}"
        before = title


def _bytes(count):
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"

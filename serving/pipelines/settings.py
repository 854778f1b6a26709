"""Read a manifest's settings as the dataclass that a pipeline declares."""

import dataclasses

from ..manifest import MANIFEST, BundleError
from ..text import Subwords
from .model import ROLE


def read_settings(folder, manifest, kind):
    """Return the manifest's settings as a `kind`.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        kind: a dataclass. An `output` of None becomes the graph's only output. Its method
            `problems(outputs)` takes name -> `TensorSpec` of the graph's outputs, and yields
            problems.

    Raises:
        BundleError: with every reason, if they are invalid.
    """
    if ROLE not in manifest.graphs:
        raise BundleError(f"no {ROLE} graph is named", where=folder, subject=MANIFEST)
    settings, problems = manifest.parse_settings(kind)
    if not problems:
        outputs = {spec.name: spec for spec in manifest.graphs[ROLE].outputs}
        if len(outputs) == 1 and getattr(settings, "output", "") is None:
            settings = dataclasses.replace(settings, output=next(iter(outputs)))
        problems = [*settings.problems(outputs)]
    if problems:
        raise BundleError(*problems, where=folder, subject=MANIFEST)
    return settings


def wrong_output(outputs, name, axes, field="output"):
    """Yield problems of an output that the settings name.

    Args:
        outputs: name -> `TensorSpec`.
        name: name of the output.
        axes: sizes, or names of open axes.
        field: field of the settings.
    """
    if name not in outputs:
        yield f"settings.{field} must be one of {', '.join(outputs)}; received {name!r}"
        return
    shape = outputs[name].shape
    fits = len(shape) == len(axes) and all(
        size == expected
        for size, expected in zip(shape, axes)
        if isinstance(size, int) and isinstance(expected, int)
    )
    if not fits:
        expected, received = (", ".join(map(str, sizes)) for sizes in (axes, shape))
        yield f"{_described(name)} must be ({expected}) to these settings; it is ({received})"


def wrong_logits(outputs, name, axes, labels, none_of_these=False):
    """Yield problems of an output of logits: one logit for each label, or one without labels.

    Args:
        outputs: name -> `TensorSpec`.
        name: name of the output.
        axes: those before the logits, see `wrong_output`.
        labels: labels of the settings.
        none_of_these: whether a last logit stands for none of the labels.
    """
    shape = outputs[name].shape if name in outputs else ()
    expected = (len(labels) or 1) + none_of_these
    received = shape[-1] if len(shape) == len(axes) + 1 else None
    if not isinstance(received, int) or received == expected:
        yield from wrong_output(outputs, name, (*axes, expected))
    elif not labels:
        yield f"settings.labels is missing, and {_described(name)} has {received} logits"
    else:
        yield (
            f"settings.labels names {len(labels)} label{'s' * (len(labels) != 1)}"
            f"{', and none_of_these adds one' * none_of_these}; "
            f"{_described(name)} has {received} logit{'s' * (received != 1)}"
        )


def stride_problems(stride):
    """Yield problems of the stride of windows, or of None."""
    if stride is not None and stride < 1:
        yield f"settings.stride must be at least 1; received {stride}"


def require_windows(folder, stride, tokenizer):
    """Raise a BundleError if there is a stride, and a tokenizer that makes no windows."""
    if stride is not None and not isinstance(tokenizer, Subwords):
        raise BundleError("settings.stride needs WordPiece or byte-level BPE", where=folder)


def row_problems(rows):
    """Yield problems of the `serving.rows.Rows` of the settings, or of None."""
    if rows is not None:
        yield from (f"settings.rows: {reason}" for reason in rows.problems())


def _described(name):
    return "the model's output" if name == "output" else f"the model's output {name}"

"""Whether padding a row of a batch changes the model's outputs for the row.

`seqkeras.export.checks.behaviour` tries models on texts with made-up tokens; this file tries all
others with the run's own inputs.
"""

import itertools

import keras
import numpy as np

from seqkeras.export.families.single import INPUTS
from seqkeras.export.feeds import NUMBERS
from seqkeras.export.pipelines import record_of
from seqkeras.serving.pipelines.arrays import PADDING

TOLERANCE = 1e-4
COLUMNS = 3  # of padding, which replace an input's last steps
MOST_TRIED = 4  # inputs


def same_rows(alone, padded):
    """Return whether an output for rows stays the same with padding, apart from the padding
    itself."""
    own = tuple(slice(size) for size in alone.shape)
    return np.allclose(alone, padded[own], rtol=TOLERANCE, atol=TOLERANCE)


def changed_by_padding(run, plan, pipeline, answered):
    """Return the names of a model's outputs that change with padding.

    `serving` never pads the inputs of a language model.

    Args:
        run: a `Run`.
        plan: its model's `ExportPlan`.
        pipeline: the pipeline of the future graphs.
        answered: takes a list of inputs, and returns the model calls with which that pipeline
            answers them: a list of (name -> input, name -> output).
    """
    feeds = record_of(run.record.pipeline).feeds_of(run.tokenizers)
    inputs = run.inputs[:MOST_TRIED]
    if plan.kind == "encoder-decoder":
        found = _logits(run, map(pipeline.encode, inputs))
    elif plan.kind == "language model" or isinstance(run.model, tuple(INPUTS)):
        found = ()
    elif NUMBERS in feeds.values():
        found = _with_zeros(inputs, answered, plan.graphs["model"])
    else:
        found = _in_a_batch(inputs, answered)
    return list(dict.fromkeys(name for name, one, other in found if not same_rows(one, other)))


def _logits(run, rows):
    """Yield the logits for the beginning of a source, and those for its padded copy.

    Args:
        run: a `Run`.
        rows: the pipeline's encodings of sources, of which the longest is tried.
    """
    source = max((np.asarray(getattr(row, "token_ids", row)) for row in rows), key=len)
    kept, start = _kept(len(source)), np.array([[run.decoding.start_id]])
    alone = source[np.newaxis, :kept]
    behind = [(0, 0), (0, len(source) - kept), *[(0, 0)] * (source.ndim - 1)]
    found = []
    for sources in (alone, np.pad(alone, behind)):
        state = run.model.encode(sources, np.array([kept]))
        (logits, *_), _ = run.model.step(start, state)
        found.append(keras.ops.convert_to_numpy(logits))
    yield "logits", *found


def _kept(length):
    return max(1, length - COLUMNS)


def _with_zeros(inputs, answered, signature):
    """Yield (name of an output, its value, its value with zeros after the input)."""
    if PADDING.isdisjoint(spec.name for spec in signature.inputs):
        return  # the pipeline pads nothing
    for value in inputs:
        for feed, _ in answered([value]):
            alone, padded = {}, {}
            for spec in signature.inputs:
                whole = feed[spec.name]
                sizes = [_kept(n) if _is_open(axis) else n for n, axis in _axes(whole, spec)]
                own = whole[:, *map(slice, sizes)]
                if spec.name == "lengths":
                    own = np.vectorize(_kept)(own)
                room = [(0, n - m) for n, m in zip(whole.shape[1:], sizes, strict=True)]
                alone[spec.name], padded[spec.name] = own, np.pad(own, [(0, 0), *room])
            ours, theirs = signature.function(**alone), signature.function(**padded)
            for name in ours:
                yield (
                    name,
                    *(keras.ops.convert_to_numpy(outputs[name]) for outputs in (ours, theirs)),
                )


def _axes(array, spec):
    return zip(array.shape[1:], spec.shape[1:], strict=True)


def _is_open(axis):
    return isinstance(axis, str)


def _in_a_batch(inputs, answered):
    """Yield (name of an output, its value, its value in a batch with a longer input)."""
    for value, other in itertools.permutations(inputs, 2):
        alone, together = answered([value]), answered([value, other])
        if len(alone) != 1 or len(together) != 1:
            continue  # read in windows, or in separate batches
        [(feed, outputs)], [(feeds, rows)] = alone, together
        [place] = [row for row in range(2) if _is_padded(feed, feeds, row)][:1] or [None]
        if place is not None:
            for name, one in outputs.items():
                yield name, one, rows[name][place : place + 1]


def _is_padded(feed, feeds, row):
    """Return whether the batch's inputs at `row` are those of the single row plus padding."""
    own = {name: feeds[name][row : row + 1] for name in feed}
    begins = all(
        np.array_equal(one, own[name][tuple(map(slice, one.shape))]) for name, one in feed.items()
    )
    return begins and any(one.shape != own[name].shape for name, one in feed.items())

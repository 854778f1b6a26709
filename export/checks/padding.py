"""Whether padding a row of a batch changes the model's outputs for the row.

`seqkeras.export.checks.behaviour` tries models on texts with made-up tokens; this file tries all
others with the run's own inputs.
"""

import itertools

import keras
import numpy as np

from seqkeras.export.checks.behaviour import frames, same_rows
from seqkeras.export.families.calling import reason_of
from seqkeras.export.families.single import INPUTS
from seqkeras.export.feeds import ENCODER_DECODER, LANGUAGE_MODEL, NUMBERS
from seqkeras.serving.pipelines.arrays import PADDING

COLUMNS = 3  # of padding, which replace an input's last steps
MOST_TRIED = 4  # inputs


def padding(checked):
    """Yield which outputs change with the padding of an input, or are probabilities of frames."""
    feeds = checked.feeds
    if "token_ids" in feeds and "text" in checked.run.tokenizers:
        return  # `behaviour.texts` reports these models
    try:
        pairs = _pairs(checked)
        changed = dict.fromkeys(name for name, one, other in pairs if not same_rows(one, other))
        problems = [*frames(checked)]
    except Exception as error:  # whatever the model's own code raises
        yield f"the model must take {checked.names[1]}; it says: {reason_of(error)}"
        return
    yield from problems
    way_out = "leave it out by lengths"
    if NUMBERS in feeds.values():
        way_out += (
            " or padding_mask, or take neither: then inputs of one length alone share a batch"
        )
    for name in changed:
        yield f"the model's {name} changes with the padding behind an input: {way_out}"


def _pairs(checked):
    """Return (name of an output, its value, its value with padding) of the run's first inputs.

    `serving` never pads the inputs of a language model.
    """
    run, plan, inputs = checked.run, checked.plan, checked.run.inputs[:MOST_TRIED]
    if plan.kind == ENCODER_DECODER:
        return _logits(run, map(checked.pipeline.encode, inputs))
    if plan.kind == LANGUAGE_MODEL or isinstance(run.model, tuple(INPUTS)):
        return ()
    if NUMBERS in checked.feeds.values():
        return _with_zeros(inputs, checked.answered, plan.graphs["model"])
    return _in_a_batch(inputs, checked.answered)


def _logits(run, rows):
    """Yield the logits for the beginning of the longest source, and those for its padded copy."""
    source = max((np.asarray(getattr(row, "token_ids", row)) for row in rows), key=len)
    kept, start = _kept(len(source)), np.array([[run.decoding.start_id]])
    alone = source[np.newaxis, :kept]
    behind = [(0, 0), (0, len(source) - kept), *[(0, 0)] * (source.ndim - 1)]
    results = []
    for sources in (alone, np.pad(alone, behind)):
        state = run.model.encode(sources, np.array([kept]))
        (logits, *_), _ = run.model.step(start, state)
        results.append(keras.ops.convert_to_numpy(logits))
    yield "logits", *results


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
                axes = zip(whole.shape[1:], spec.shape[1:], strict=True)
                sizes = [_kept(n) if isinstance(axis, str) else n for n, axis in axes]
                part = whole[:, *map(slice, sizes)]
                if spec.name == "lengths":
                    part = np.vectorize(_kept)(part)
                room = [(0, n - m) for n, m in zip(whole.shape[1:], sizes, strict=True)]
                alone[spec.name], padded[spec.name] = part, np.pad(part, [(0, 0), *room])
            ours, theirs = signature.function(**alone), signature.function(**padded)
            for name in ours:
                yield name, *map(keras.ops.convert_to_numpy, (ours[name], theirs[name]))


def _in_a_batch(inputs, answered):
    """Yield (name of an output, its value, its value in a batch with a longer input)."""
    for value, other in itertools.permutations(inputs, 2):
        alone, together = answered([value]), answered([value, other])
        if len(alone) != 1 or len(together) != 1:
            continue  # read in windows, or in separate batches
        [(feed, outputs)], [(feeds, rows)] = alone, together
        [index] = [row for row in range(2) if _is_padded(feed, feeds, row)][:1] or [None]
        if index is not None:
            for name, one in outputs.items():
                yield name, one, rows[name][index : index + 1]


def _is_padded(feed, feeds, row):
    """Return whether the batch's inputs at `row` are those of the single row plus padding."""
    rows = {name: feeds[name][row : row + 1] for name in feed}
    begins = all(
        np.array_equal(one, rows[name][tuple(map(slice, one.shape))]) for name, one in feed.items()
    )
    return begins and any(one.shape != rows[name].shape for name, one in feed.items())

"""Problems of a model's outputs: probabilities, inputs that it rejects, changes with padding.

Models of texts are tried with made-up tokens, all others with the run's own inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import keras
import numpy as np

from seqkeras.export.families.calling import reason_of
from seqkeras.export.families.single import INPUTS
from seqkeras.export.feeds import ENCODER_DECODER, FRAMES, LANGUAGE_MODEL, NUMBERS
from seqkeras.serving.pipelines.arrays import PADDING
from seqkeras.serving.pipelines.model import MASKED

if TYPE_CHECKING:
    from seqkeras.export.checks.fit import Checked

MOST_TOKENS = 2048  # in the longest row of the trial
MOST_PADDED = 64  # in the row that is tried with padding and without
PROBABILITIES = {"Softmax": "softmax", "Sigmoid": "sigmoid"}  # TensorFlow's operators, in words
HANDED_ON = ("Identity", "Reshape", "Cast", "Squeeze", "ExpandDims")
TOLERANCE = 1e-4
COLUMNS = 3  # of padding, which replace an input's last steps
MOST_TRIED = 4  # inputs


def same_rows(alone: np.ndarray, padded: np.ndarray) -> bool:
    """Return whether an output for rows stays the same in front of padding."""
    unpadded = tuple(slice(size) for size in alone.shape)
    return np.allclose(alone, padded[unpadded], rtol=TOLERANCE, atol=TOLERANCE)


def texts(checked: Checked) -> Iterator[str]:
    """Yield problems of a model that seqkeras does not define, tried with made-up tokens."""
    run, tokenizer = checked.run, checked.run.tokenizers.get("text")
    if (
        not checked.pipeline_record.feeds
        or isinstance(run.model, tuple(INPUTS))
        or tokenizer is None
    ):
        return
    last, graph = len(tokenizer) - 1, checked.plan.graphs["model"]
    longest = checked.pipeline_record.row_length(run.limits, run.record.settings)
    most = min(longest, MOST_TOKENS)
    whole = min(most, MOST_PADDED)
    some = 1 + np.arange((whole + 1) // 2) % last
    demands = {
        f"rows of {longest} tokens": lambda: _called(graph, np.ones(most, int)),
        f"every id of its tokenizer, from 0 to {last}": lambda: _called(graph, np.full(most, last)),
        "rows of any size in a graph": lambda: _operators(graph),
        f"rows of {len(some)} tokens": lambda: _called(graph, some),
        "rows with padding": lambda: _called(graph, some, whole - len(some)),
    }
    answers = []
    for demand, use in demands.items():
        try:
            answers.append(use())
        except Exception as error:  # whatever the model's own code raises
            yield f"the model must take {demand}; it says: {reason_of(error)}"
            return
    _, _, operators, alone, padded = answers
    for name in (spec.name for spec in graph.outputs):
        if not same_rows(alone[name], padded[name]):
            yield (
                f"the model's {name} changes with the padding after a text: leave it out, by "
                "lengths, by padding_mask, or by Embedding(..., mask_zero=True)"
            )
    yield from _probabilities(checked, operators, alone)


def frames(checked: Checked) -> Iterator[str]:
    """Yield which outputs of a model of frames are probabilities."""
    if checked.feeds is FRAMES:
        [(_, outputs), *_] = checked.answered(checked.run.inputs[:1])
        yield from _probabilities(checked, _operators(checked.plan.graphs["model"]), outputs)


def _probabilities(checked, operators, outputs):
    """Yield which outputs are probabilities and should be logits; `operators`: see `_operators`."""
    record = checked.run.record
    for name in checked.pipeline_record.logits_among(record.settings, [*outputs]):
        if operators[name] in PROBABILITIES or _are_probabilities(outputs[name]):
            activation = PROBABILITIES.get(operators[name], "softmax")
            yield (
                f"the model's {name} holds probabilities, where {record.pipeline} needs logits: "
                f"{_without(checked.run.model, activation)}"
            )


def _without(model, activation):
    """Return how a user removes an activation from a trained model without changing its weights."""
    ends = [
        layer.name
        for layer in model.layers
        if getattr(getattr(layer, "activation", None), "__name__", "") == activation
    ]
    text = f"leave out the {activation}, in training by from_logits=True of the loss"
    if len(ends) != 1:
        return text
    line = f"model.get_layer({ends[0]!r}).activation = keras.activations.linear"
    return f"{text}; {line} takes it off a trained model, whose weights stay"


def _operators(graph):
    """Return the TensorFlow operator of each output of a `Signature`: name -> its type."""
    outputs = graph.traced.structured_outputs
    return {name: _made_by(tensor.op) for name, tensor in outputs.items()}


def _made_by(operation):
    while operation.type in HANDED_ON:
        operation = operation.inputs[0].op
    return operation.type


def _are_probabilities(numbers):
    """Return whether rows of numbers look like those of a softmax."""
    return bool((numbers >= 0).all() and np.allclose(numbers.sum(-1), 1, rtol=0, atol=1e-5))


def _called(graph, tokens, padding=0):
    """Return a model's outputs by name for a row of tokens, padded on the right, or two choices."""
    token_ids = np.pad(tokens, (0, padding))
    real = np.arange(len(token_ids)) < len(tokens)
    row = {
        "token_ids": token_ids,
        "lengths": np.array(len(tokens)),
        "padding_mask": real,
        "segment_ids": np.zeros_like(token_ids),
        MASKED: np.zeros(1, int),
    }
    feed = {}
    for spec in graph.inputs:
        shape = [2 if size == "choices" else 1 for size in spec.shape]
        value = row[spec.name]
        feed[spec.name] = np.tile(value, shape[: len(shape) - value.ndim] + [1] * value.ndim)
    outputs = graph.function(**feed)
    return {name: keras.ops.convert_to_numpy(tensor) for name, tensor in outputs.items()}


def padding(checked: Checked) -> Iterator[str]:
    """Yield which outputs change with the padding of an input, or are probabilities of frames."""
    feeds = checked.feeds
    if "token_ids" in feeds and "text" in checked.run.tokenizers:
        return  # `texts` reports these models
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
        yield f"the model's {name} changes with the padding after an input: {way_out}"


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
    length, start = _kept(len(source)), np.array([[run.decoding.start_id]])
    alone = source[np.newaxis, :length]
    behind = [(0, 0), (0, len(source) - length), *[(0, 0)] * (source.ndim - 1)]
    results = []
    for sources in (alone, np.pad(alone, behind)):
        state = run.model.encode(sources, np.array([length]))
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

"""Problems of a model's outputs: probabilities instead of logits, outputs that change with padding,
inputs that the model rejects."""

import keras
import numpy as np

from seqkeras.export.checks.padding import changed_by_padding, same_rows
from seqkeras.export.families.calling import reason_of
from seqkeras.export.families.single import INPUTS
from seqkeras.export.feeds import FRAMES, NUMBERS
from seqkeras.export.pipelines import record_of
from seqkeras.export.signatures import to_trace
from seqkeras.serving.pipelines.model import MASKED

MOST_TOKENS = 2048  # in the longest row of the trial
MOST_PADDED = 64  # in the row that is tried with padding and without
PROBABILITIES = {"Softmax": "softmax", "Sigmoid": "sigmoid"}  # TensorFlow's operators, in words
HANDED_ON = ("Identity", "Reshape", "Cast", "Squeeze", "ExpandDims")


def problems_of_texts(run, plan):
    """Yield problems of a model that seqkeras does not define, tried with made-up tokens."""
    pipeline, model, tokenizers = run.record.pipeline, run.model, run.tokenizers
    if (
        not record_of(pipeline).feeds
        or isinstance(model, tuple(INPUTS))
        or "text" not in tokenizers
    ):
        return
    last = len(tokenizers["text"]) - 1
    longest = record_of(pipeline).row_length(run.limits, run.record.settings)
    graph, most = plan.graphs["model"], min(longest, MOST_TOKENS)
    whole = min(most, MOST_PADDED)
    some = 1 + np.arange((whole + 1) // 2) % last
    demands = {
        f"rows of {longest} tokens": lambda: _called(plan, np.ones(most, int)),
        f"every id of its tokenizer, from 0 to {last}": lambda: _called(plan, np.full(most, last)),
        "rows of any size in a graph": lambda: _activations(graph),
        f"rows of {len(some)} tokens": lambda: _called(plan, some),
        "rows with padding": lambda: _called(plan, some, whole - len(some)),
    }
    answers = []
    for demand, use in demands.items():
        try:
            answers.append(use())
        except Exception as error:  # whatever the model's own code raises
            yield f"the model must take {demand}; it says: {reason_of(error)}"
            return
    _, _, activations, alone, padded = answers
    for name in (spec.name for spec in graph.outputs):
        if not same_rows(alone[name], padded[name]):
            yield (
                f"the model's {name} changes with the padding behind a text: leave it out, by "
                "lengths, by padding_mask, or by Embedding(..., mask_zero=True)"
            )
    yield from _probabilities(run, activations, alone)


def _probabilities(run, activations, outputs):
    """Yield which outputs are probabilities and should be logits: name -> operator, name ->
    array."""
    record = run.record
    for name in record_of(record.pipeline).logits_among(record.settings, [*outputs]):
        if activations[name] in PROBABILITIES or _are_probabilities(outputs[name]):
            way_out = _without(run.model, PROBABILITIES.get(activations[name], "softmax"))
            yield (
                f"the model's {name} holds probabilities, where {run.record.pipeline} needs "
                f"logits: {way_out}"
            )


def problems_of_padding(run, plan, pipeline, answered, name):
    """Yield which outputs change with the padding of an input (`changed_by_padding`)."""
    feeds = record_of(run.record.pipeline).feeds_of(run.tokenizers)
    if "token_ids" in feeds and "text" in run.tokenizers:
        return  # `problems_of_texts` reports these models
    try:
        changed = changed_by_padding(run, plan, pipeline, answered)
        if feeds is FRAMES:
            [(_, outputs), *_] = answered(run.inputs[:1])
            yield from _probabilities(run, _activations(plan.graphs["model"]), outputs)
    except Exception as error:  # whatever the model's own code raises
        yield f"the model must take {name}; it says: {reason_of(error)}"
        return
    way_out = "leave it out by lengths"
    if NUMBERS in feeds.values():
        way_out += (
            " or padding_mask, or take neither: then inputs of one length alone share a batch"
        )
    for name in changed:
        yield f"the model's {name} changes with the padding behind an input: {way_out}"


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


def _activations(graph):
    """Return the TensorFlow operator that each output of a `Signature` comes from: name -> its
    type."""
    outputs = to_trace(graph.function, graph.inputs).get_concrete_function().structured_outputs
    return {name: _made_by(tensor.op) for name, tensor in outputs.items()}


def _made_by(operation):
    while operation.type in HANDED_ON:
        operation = operation.inputs[0].op
    return operation.type


def _are_probabilities(numbers):
    """Return whether rows of numbers look like those of a softmax."""
    return bool((numbers >= 0).all() and np.allclose(numbers.sum(-1), 1, rtol=0, atol=1e-5))


def _called(plan, tokens, padding=0):
    """Return a model's outputs for a row of tokens, padded on the right, or two choices, by
    name."""
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
    for spec in plan.graphs["model"].inputs:
        shape = [2 if size == "choices" else 1 for size in spec.shape]
        value = row[spec.name]
        feed[spec.name] = np.tile(value, shape[: len(shape) - value.ndim] + [1] * value.ndim)
    found = plan.graphs["model"].function(**feed)
    return {name: keras.ops.convert_to_numpy(tensor) for name, tensor in found.items()}

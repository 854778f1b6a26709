"""Problems of a model's outputs: probabilities instead of logits, outputs that change with padding,
inputs that the model rejects."""

import keras
import numpy as np

from seqkeras.export.families.calling import reason_of
from seqkeras.export.families.single import INPUTS
from seqkeras.export.feeds import FRAMES
from seqkeras.export.signatures import to_trace
from seqkeras.serving.pipelines.model import MASKED

MOST_TOKENS = 2048  # in the longest row of the trial
MOST_PADDED = 64  # in the row that is tried with padding and without
PROBABILITIES = {"Softmax": "softmax", "Sigmoid": "sigmoid"}  # TensorFlow's operators, in words
HANDED_ON = ("Identity", "Reshape", "Cast", "Squeeze", "ExpandDims")
TOLERANCE = 1e-4


def same_rows(alone, padded):
    """Return whether an output for rows stays the same in front of padding."""
    unpadded = tuple(slice(size) for size in alone.shape)
    return np.allclose(alone, padded[unpadded], rtol=TOLERANCE, atol=TOLERANCE)


def texts(checked):
    """Yield problems of a model that seqkeras does not define, tried with made-up tokens."""
    run, tokenizer = checked.run, checked.run.tokenizers.get("text")
    if not checked.own.feeds or isinstance(run.model, tuple(INPUTS)) or tokenizer is None:
        return
    last, graph = len(tokenizer) - 1, checked.plan.graphs["model"]
    longest = checked.own.row_length(run.limits, run.record.settings)
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
                f"the model's {name} changes with the padding behind a text: leave it out, by "
                "lengths, by padding_mask, or by Embedding(..., mask_zero=True)"
            )
    yield from _probabilities(checked, operators, alone)


def frames(checked):
    """Yield which outputs of a model of frames are probabilities."""
    if checked.feeds is FRAMES:
        [(_, outputs), *_] = checked.answered(checked.run.inputs[:1])
        yield from _probabilities(checked, _operators(checked.plan.graphs["model"]), outputs)


def _probabilities(checked, operators, outputs):
    """Yield which outputs are probabilities and should be logits; `operators`: see `_operators`."""
    record = checked.run.record
    for name in checked.own.logits_among(record.settings, [*outputs]):
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
    outputs = to_trace(graph.function, graph.inputs).get_concrete_function().structured_outputs
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

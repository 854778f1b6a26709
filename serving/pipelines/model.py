"""The graph of a model that answers in a single pass."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..manifest import Manifest
from ..opening import Runtime, open_session
from ..text import pad
from .batching import MOST_PADDING, TOKEN_BUDGET, answer_in_batches

ROLE = "model"
MASKED = "masked_positions"
FEW = 32  # numbers of a row that Python's own functions work on faster than NumPy's


@dataclass(frozen=True)
class Packing:
    """The way from rows to the inputs of a graph.

    Attributes:
        arrays: takes a list of rows, returns name -> array; arrays that the graph does not take are
            dropped.
        required, optional: names of the inputs that the graph must take and may take.
        padded_by: names of inputs that mark padding; a graph without one gets batches of rows of
            one length.
        most_padding: see `batches`.
        labels: takes a row, returns input -> labels of its positions, an `Encoding` or a list of
            strings.
    """

    arrays: Callable
    required: frozenset
    optional: frozenset = frozenset()
    padded_by: frozenset = frozenset()
    most_padding: int | None = MOST_PADDING
    labels: Callable = lambda row: {"token_ids": row}


def token_arrays(encodings):
    """Return a batch of `Encoding`s as arrays by name.

    A graph of several heads may have an input for masked positions; here it is the first token of
        each row. `lengths` and `padding_mask` are two forms of the same information.
    """
    token_ids, lengths = pad([encoding.token_ids for encoding in encodings])
    segment_ids, _ = pad([encoding.segment_ids for encoding in encodings], pad_id=0)
    return {
        "token_ids": token_ids,
        "lengths": lengths,
        "segment_ids": segment_ids,
        "padding_mask": np.arange(token_ids.shape[1]) < lengths[:, np.newaxis],
        MASKED: np.zeros((len(encodings), 1), dtype=np.int64),
    }


# A model without lengths and padding_mask must ignore padding, token 0, by itself: export verifies
# that it does.
TOKENS = Packing(
    token_arrays,
    frozenset({"token_ids"}),
    frozenset({"lengths", "padding_mask", "segment_ids", MASKED}),
)


class Model:
    """Computes a model's outputs for rows, which are `Encoding`s by default.

        model(token_ids, lengths, segment_ids) -> outputs

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`; None for the default one.
        outputs: names of the outputs to compute.
        packing: a `Packing`.
        role: role of the graph.

    Raises:
        BundleError: if the graph is missing, can not be opened, or is not what the manifest says.
    """

    roles = (ROLE,)

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        runtime: Runtime | None,
        outputs: Sequence[str | None],
        packing: Packing = TOKENS,
        role: str = ROLE,
    ):
        runtime = runtime or Runtime()
        self._session = open_session(
            folder,
            manifest,
            role,
            runtime,
            packing.required,
            set(outputs),
            packing.optional,
        )
        self._arrays = packing.arrays
        self._takes = [spec.name for spec in runtime.graphs_of(manifest)[role].inputs]
        self._outputs = list(outputs)
        takes_padding = not packing.padded_by or packing.padded_by & {*self._takes}
        self._most_padding = runtime.most_padding(packing) if takes_padding else 0

    def __repr__(self) -> str:
        return f"Model({self._session!r})"

    def takes(self, name: str) -> bool:
        """Return whether the graph takes an input of that name."""
        return name in self._takes

    def answer(self, rows: Sequence, read: Callable, token_budget: int = TOKEN_BUDGET) -> list:
        """Return what `read` makes of the outputs for each row, in their order.

        Args:
            rows: list of rows of the packing; the length of a row is its number of tokens.
            read: takes the index of a row and its padded outputs; it is called after each batch, so
                that the outputs of all rows are never in memory at once.
            token_budget: the most tokens of a batch, padding among them.
        """

        def run(places):
            outputs = self._run(self._arrays([rows[index] for index in places]))
            return [read(index, *arrays) for index, *arrays in zip(places, *outputs)]

        lengths = [len(row) for row in rows]
        places = range(len(rows))
        return answer_in_batches(places, lengths, run, token_budget, self._most_padding)

    def answer_groups(
        self, groups: Sequence[Sequence], read: Callable, token_budget: int = TOKEN_BUDGET
    ) -> list:
        """Return what `read` makes of the outputs for each group of rows, in their order.

        A group of C rows is a row (C, length) of the graph's inputs. Only groups of one size share
        a batch. A group is never split, even over the budget, because the model may compare its
        rows.
        """

        def run(places):
            size = len(groups[places[0]])
            inputs = self._arrays([row for index in places for row in groups[index]])
            inputs = {
                name: value.reshape(len(places), size, *value.shape[1:])
                for name, value in inputs.items()
            }
            return [read(index, *arrays) for index, *arrays in zip(places, *self._run(inputs))]

        answers = {}
        for size in {len(group) for group in groups}:
            places = [index for index, group in enumerate(groups) if len(group) == size]
            lengths = [size * max(map(len, groups[index])) for index in places]
            answered = answer_in_batches(places, lengths, run, token_budget)
            answers |= dict(zip(places, answered))
        return [answers[index] for index in range(len(groups))]

    def _run(self, inputs):
        return self._session.run(self._outputs, {name: inputs[name] for name in self._takes})


# What a model gives may be infinite or NaN: answers of such numbers are refused, without a warning.
unwarned = np.errstate(invalid="ignore", over="ignore")


def softmax(logits):
    """Return exp(x) / sum exp(x) over the last axis, in float64."""
    if logits.ndim > 1 or len(logits) > FEW:
        return _softmax(logits)
    numbers = logits.tolist()
    largest = max(numbers)
    exponentials = [math.exp(number - largest) for number in numbers]
    total = sum(exponentials)
    return np.array([exponential / total for exponential in exponentials])


@unwarned
def _softmax(logits):
    exps = np.exp(logits.astype("float64") - logits.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


@unwarned
def sigmoid(logits):
    """Return 1 / (1 + exp(-x)), in float64."""
    return np.exp(-np.logaddexp(0.0, -logits.astype("float64")))

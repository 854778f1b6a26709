"""The graph of a model that answers in one go."""

import numpy as np

from ..opening import Runtime, open_session
from ..text import pad
from .batching import MOST_PADDING, TOKEN_BUDGET, answer_in_batches

ROLE = "model"


class Model:
    """From token ids to what the heads of a model give.

        model(token_ids, lengths, segment_ids) -> outputs

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`; None for the default one.
        outputs: names of the outputs that are asked for.

    Raises:
        BundleError: if the graph is missing, can not be opened, or is not what the manifest says.
    """

    def __init__(self, folder, manifest, runtime, outputs):
        runtime = runtime or Runtime()
        self._session = open_session(
            folder,
            manifest,
            ROLE,
            runtime,
            {"token_ids", "lengths"},
            set(outputs),
            optional={"segment_ids"},
        )
        self._takes = [spec.name for spec in runtime.graphs_of(manifest)[ROLE].inputs]
        self._outputs = list(outputs)

    def answer(self, encodings, read, token_budget=TOKEN_BUDGET):
        """Return what `read` makes of the outputs for each `Encoding`, in their order.

        Args:
            encodings: list of `Encoding`.
            read: takes the place of one in the list, and its outputs, padding behind them; it is
                called as soon as a batch is done, so that the outputs of all never lie in memory.
            token_budget: the most tokens of a batch, padding among them.
        """

        def run(places):
            outputs = self._run(_arrays([encodings[place] for place in places]))
            return [read(place, *each) for place, *each in zip(places, *outputs)]

        lengths = [len(each) for each in encodings]
        places = range(len(encodings))
        return answer_in_batches(places, lengths, run, token_budget, MOST_PADDING)

    def answer_groups(self, groups, read, token_budget=TOKEN_BUDGET):
        """Return what `read` makes of the outputs for each group of `Encoding`s, in their order.

        A group of C is a row (C, length) of the graph's inputs. Only groups of one size are rows of
        one batch.
        """

        def run(places):
            size = len(groups[places[0]])
            inputs = _arrays([each for place in places for each in groups[place]])
            inputs = {
                name: value.reshape(len(places), size, *value.shape[1:])
                for name, value in inputs.items()
            }
            return [read(place, *each) for place, *each in zip(places, *self._run(inputs))]

        answers = {}
        for size in {len(group) for group in groups}:
            places = [place for place, group in enumerate(groups) if len(group) == size]
            lengths = [size * max(map(len, groups[place])) for place in places]
            found = answer_in_batches(places, lengths, run, token_budget)
            answers |= dict(zip(places, found))
        return [answers[place] for place in range(len(groups))]

    def _run(self, inputs):
        return self._session.run(self._outputs, {name: inputs[name] for name in self._takes})


def _arrays(encodings):
    """Return the inputs of a batch by name."""
    token_ids, lengths = pad([each.token_ids for each in encodings])
    segment_ids, _ = pad([each.segment_ids for each in encodings], pad_id=0)
    return {"token_ids": token_ids, "lengths": lengths, "segment_ids": segment_ids}


def softmax(logits):
    """Return exp(x) / sum exp(x) over the last axis, in float64."""
    exps = np.exp(logits.astype("float64") - logits.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def sigmoid(logits):
    """Return 1 / (1 + exp(-x)), in float64."""
    return np.exp(-np.logaddexp(0.0, -logits.astype("float64")))

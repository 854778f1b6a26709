"""The likelihood of a whole text under a language model: each token counts once."""

import math

import keras
import numpy as np
from keras import ops

from seqkeras.decoding import compiled

NO_TARGET = -1
MOST_LOGITS = 2**24  # of a batch, in numbers
MOST_ROWS = 64


class TextLikelihood:
    """The mean negative log-likelihood of a stream of tokens, in windows of one length.

        loss = -1/n sum over i of log p(y(i) | y(k) ... y(i-1)),    i = 1 ... n

    Each token after the first is predicted once. The model decides which tokens y(k) ... y(i-1)
    it sees:

        with a state, such as `RNNLanguageModel`     all tokens before in its row: the stream is cut
                                                      into `rows` parts, and the state is carried
                                                      through each
        others, such as `GPT`                         the tokens before in its window. A window
                                                      begins every `stride` tokens. Where windows
                                                      overlap, the first window's prediction counts;
                                                      so after the first window a token has at
                                                      least `length - stride` tokens before it

    Args:
        tokens: (n + 1,) integers; the first is only read.
        length: the most tokens that are read at once.
        stride: distance of windows, from 1 to `length`, for models without a state; None for
            `length`.
        rows: number of parts of the stream, for models with a state.

    Call arguments:
        model: a language model.

    Returns:
        The loss, in nats for each token; its exponential is the perplexity.

    Raises:
        ValueError: if there is nothing to predict, or the stride is out of range.

    Reference: https://huggingface.co/docs/transformers/perplexity (stride); Merity et al. 2018,
    https://arxiv.org/abs/1708.02182 (state)

    Example:
        >>> import numpy as np
        >>> from seqkeras.analysis import TextLikelihood
        >>> class Uniform:
        ...     vocab_size, max_length = 5, 8
        ...
        ...     def __call__(self, inputs, training):
        ...         return np.zeros((*inputs["token_ids"].shape, self.vocab_size), "float32")
        >>> round(TextLikelihood([3, 1, 4, 1, 2], length=3)(Uniform()), 3)  # log 5
        1.609
    """

    def __init__(self, tokens: np.ndarray, length: int, stride: int | None = None, rows: int = 10):
        stride = length if stride is None else stride
        if len(tokens) < 2 or not 1 <= stride <= length:
            raise ValueError(
                "TextLikelihood: needs two tokens at least, and a stride from 1 to the length, "
                f"{length}; received {len(tokens)} tokens and the stride {stride}."
            )
        self.tokens = np.asarray(tokens, "int32")
        self.length, self.stride, self.rows = length, stride, rows
        self.model = None

    def __call__(self, model):
        """Return the loss of a model, in nats for each token.

        Args:
            model: reads {"token_ids": (B, T)} and returns logits (B, T, V), and has a `vocab_size`
                and a `max_length`; one that carries a state has no `max_length`, but
                `initial_state(batch_size)` and `read(token_ids, state=...)`.
        """
        if model is not self.model:
            carries = not hasattr(model, "max_length")
            losses = _after(model) if carries else _of(model)
            self.model, self.measure = model, losses
            if isinstance(model, keras.Model):
                self.measure = compiled(losses)
            self.batches = self._consecutive if carries else self._apart
        return self.batches() / (len(self.tokens) - 1)

    def _consecutive(self):
        """Return the sum of losses, with the state of each row carried on."""
        predicted = len(self.tokens) - 1
        rows = min(self.rows, predicted)
        size = math.ceil(predicted / rows)
        width = math.ceil(size / self.length) * self.length
        places = np.arange(rows)[:, None] * size + np.arange(width)
        real = (np.arange(width) < size) & (places < predicted)
        token_ids, targets = self._taken(places, real)
        total, state = 0.0, self.model.initial_state(rows)
        for start in range(0, width, self.length):
            window = slice(start, start + self.length)
            losses, state = self.measure(token_ids[:, window], targets[:, window], state)
            total += float(np.asarray(losses, "float64").sum())
        return total

    def _apart(self):
        """Return the sum of losses of windows each for itself."""
        predicted, length = len(self.tokens) - 1, min(self.length, len(self.tokens) - 1)
        stride = min(self.stride, length)
        starts = np.arange(0, max(predicted - length, 0) + stride, stride)
        places = starts[:, None] + np.arange(length)
        is_new = (starts == 0)[:, None] | (np.arange(length) >= length - stride)
        real = (places < predicted) & is_new
        token_ids, targets = self._taken(places, real)
        rows = min(MOST_ROWS, max(1, MOST_LOGITS // (length * self.model.vocab_size)), len(starts))
        total = 0.0
        for first in range(0, len(starts), rows):
            ids, labels = token_ids[first : first + rows], targets[first : first + rows]
            missing = rows - len(ids)  # one shape for all: it is traced once
            ids = np.pad(ids, [(0, missing), (0, 0)])
            labels = np.pad(labels, [(0, missing), (0, 0)], constant_values=NO_TARGET)
            total += float(np.asarray(self.measure(ids, labels), "float64").sum())
        return total

    def _taken(self, places, real):
        """Return tokens of places, and those after them, `NO_TARGET` where none is asked for."""
        last = len(self.tokens) - 1
        token_ids = self.tokens[np.minimum(places, last - 1)]
        targets = np.where(real, self.tokens[np.minimum(places + 1, last)], NO_TARGET)
        return token_ids, targets


def _of(model):
    def losses(token_ids, targets):
        inputs = {"token_ids": token_ids}
        if getattr(model, "reads_prefix", False):  # a text without a prefix
            inputs["prefix_lengths"] = ops.zeros_like(token_ids[:, 0])
        return _losses(model(inputs, training=False), targets)

    return losses


def _after(model):
    def losses(token_ids, targets, state):
        logits, state = model.read(token_ids, state=state)
        return _losses(logits, targets), state

    return losses


def _losses(logits, targets):
    """Return (B,) sums of the losses of a row's targets."""
    log_probs = ops.log_softmax(ops.cast(logits, "float32"))
    chosen = ops.take_along_axis(log_probs, ops.maximum(targets, 0)[..., None], axis=-1)[..., 0]
    return -ops.sum(ops.where(targets == NO_TARGET, 0.0, chosen), axis=-1)

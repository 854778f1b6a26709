"""Log-probabilities along given tokens, from step graphs that `serving` runs."""

import numpy as np

from seqkeras.serving.pipelines.arrays import padded
from seqkeras.serving.session import FRAMES
from seqkeras.serving.text import pad


def sources_of(rows):
    """Return the name of an encoder's input, the sources, and both as arrays by name with
    `lengths`.

    Args:
        rows: the pipeline's encodings of its inputs.
    """
    if isinstance(rows[0], np.ndarray):
        arrays = padded(FRAMES, rows)
        return FRAMES, rows, {name: arrays[name] for name in (FRAMES, "lengths")}
    sources = [row.token_ids for row in rows]
    return "token_ids", sources, dict(zip(("token_ids", "lengths"), pad(sources), strict=True))


def along_targets(graphs, source, lengths, target_ids):
    """Return (N, T, V) log-probabilities after each token of the targets.

    Args:
        graphs: `seqkeras.serving.session.EncoderDecoder`.
        source, lengths: the encoder's inputs, N rows.
        target_ids: (N, T), beginning with the start token.
    """
    state = graphs.encode(source, lengths)
    rows = np.arange(len(target_ids))[:, np.newaxis]
    log_probs = np.empty((*target_ids.shape, graphs.vocab_size), np.float32)
    for t in range(target_ids.shape[1]):
        candidates, state = graphs.step(target_ids[:, t : t + 1], rows, graphs.vocab_size, state)
        np.put_along_axis(
            log_probs[:, t], candidates.token_ids[:, 0], candidates.log_probs[:, 0], axis=1
        )
    return log_probs


def along_texts(graphs, token_ids, first=1):
    """Return (N, T, V) log-probabilities after each of the (N, T) tokens of texts.

    Args:
        graphs: `seqkeras.serving.session.LanguageModel`.
        token_ids: the texts.
        first: how many tokens are read before the first step; all of these get the
            log-probabilities after the last of them.
    """
    state, own = graphs.begin(len(token_ids)), np.arange(len(token_ids))[:, np.newaxis]
    logits, _, state = graphs.step_to_logits(token_ids[:, :first], own, state)
    steps = first * [logits[:, 0]]
    for t in range(first, token_ids.shape[1]):
        logits, _, state = graphs.step_to_logits(token_ids[:, t : t + 1], own, state)
        steps.append(logits[:, 0])
    return log_softmax(np.stack(steps, axis=1))


def log_softmax(logits):
    """Return log softmax(x) over the last axis."""
    with np.errstate(invalid="ignore"):  # the comparison reports values that are not finite
        shifted = logits - logits.max(axis=-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

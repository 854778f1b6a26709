"""Log-probabilities along given tokens, from step graphs that `serving` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.export.proof import log_probs_difference
from seqkeras.export.verifying.parity import batches, rows_of, tensors
from seqkeras.serving.decoding import BEST, LOGITS
from seqkeras.serving.decoding.choosing import log_softmax
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines.arrays import padded
from seqkeras.serving.session import FRAMES
from seqkeras.serving.text import pad

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.run import Run
    from seqkeras.export.verifying.parity import Comparison
    from seqkeras.serving.session import State


def sources_of(rows: Sequence[Any]) -> tuple[Any, ...]:
    """Return the name of an encoder's input, the sources, and both as arrays by name with
    `lengths`."""
    if isinstance(rows[0], np.ndarray):
        arrays = padded(FRAMES, rows)
        return FRAMES, rows, {name: arrays[name] for name in (FRAMES, "lengths")}
    sources = [row.token_ids for row in rows]
    return "token_ids", sources, dict(zip(("token_ids", "lengths"), pad(sources), strict=True))


def compare_along(
    comparison: Comparison,
    run: Run,
    by_ids: Mapping[str, Any],
    served: np.ndarray,
    expected: np.ndarray,
    arrays: Mapping[str, np.ndarray],
    lengths: np.ndarray,
    begin: int = 0,
    called: bool = True,
) -> None:
    """Compare log-probabilities along tokens with Keras's, and with those of the user's call.

    Args:
        by_ids: the signatures of the SavedModel; none if there is none.
        served: (N, T, V) of the ONNX graphs.
        expected: (N, T, V) of Keras.
        arrays: name -> array, what the SavedModel reads.
        lengths: (N,) of the real tokens.
        begin: the place of the first that is compared.
        called: whether the user's call reads these tokens in the same way.
    """
    answers = {"onnx": served}
    if by_ids:
        answers["saved_model"] = by_ids["serving_default"](**tensors(arrays))["log_probs"].numpy()
    places = np.arange(expected.shape[1])
    real = (places >= begin) & (places < lengths[:, np.newaxis])
    for name, actual in answers.items():
        comparison.compare_log_probs(name, actual[real], expected[real])
    if run.reference is not None and called:
        for name, actual in {"keras": expected, **answers}.items():
            rows = [row[begin:length] for row, length in zip(actual, lengths, strict=True)]
            comparison.compare_call(name, log_probs_difference(run, rows, begin), run.reference)


def steps_of(
    kind: Callable[..., Any], exported: Exported, count: int
) -> Iterator[tuple[Any, slice]]:
    """Yield the graphs that generate with each batch of so many rows.

    The first batch comes again with the step that appends to its caches, which other hosts run, if
    `serving` itself runs one that writes into them.

    Args:
        kind: `LanguageModel` or `EncoderDecoder`.
        exported: what is verified.
        count: the number of rows.
    """
    graphs = kind(exported.folder, exported.manifest)
    for batch in batches(count):
        yield graphs, batch
    if graphs.shares_steps:
        appending = kind(exported.folder, exported.manifest, Runtime(in_place=False))
        yield appending, batches(count)[0]


def along(graphs: Any, state: State, token_ids: np.ndarray, first: int = 1) -> np.ndarray:
    """Return (N, T, V) log-probabilities after each of (N, T) tokens, from the `State` before them.

    The `first` tokens are read before the first step; all get the log-probabilities after the last.
    That of the most probable token is what the step says of it, the others follow from its logits.
    """
    rows, steps, begin = np.arange(len(token_ids))[:, np.newaxis], [], 0
    for end in range(first, token_ids.shape[1] + 1):
        best, state = graphs.step(
            token_ids[:, begin:end], rows, 1, state, frozenset({BEST, LOGITS})
        )
        log_probs = log_softmax(best.logits[:, 0])
        np.put_along_axis(log_probs, best.token_ids[:, 0], best.log_probs[:, 0], axis=-1)
        steps += (end - begin) * [log_probs]
        begin = end
    return np.stack(steps, axis=1)


def margins(
    scores_of: Callable[[dict[str, np.ndarray]], np.ndarray], arrays: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return (N, T) the margin of the best token over the second.

    Args:
        scores_of: some rows of the arrays by name -> (n, T, V) scores of the next token.
        arrays: the arrays of all N rows by name.
    """
    rows, batch_margins = len(next(iter(arrays.values()))), []
    for batch in batches(rows):
        best = np.partition(scores_of(rows_of(arrays, batch)), -2, axis=-1)[..., -2:]
        batch_margins.append(best[..., 1] - best[..., 0])
    return np.concatenate(batch_margins)

"""A search in a TensorFlow graph that removes finished rows from the batch.

`keras.ops.while_loop` keeps every row until the last one is done, because JAX fixes its shapes.
TensorFlow's shapes may change: here an inner loop runs until a quarter of its rows are done, and
the next one continues with the other rows. A few long rows then cost no steps of the short ones.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from keras import tree

from seqkeras.decoding.loop import Loop
from seqkeras.tensors import Tensor


def run(
    step: Callable[..., Any], loop: Loop, carried: Any, fixed: Mapping[str, Tensor]
) -> tuple[Tensor, Any]:
    """Run a decoding loop from its current position to its end.

    Args:
        loop: a `Loop` whose only processor is a prompt.
        carried: what `loop.begin` and `loop.advance` return.
        fixed: the entries of the state that belong to a source, not to a beam.

    Returns:
        (B, K, T) token ids of the beams, and what the search has found.
    """
    length, *part = carried
    given = (fixed, () if loop.prompt is None else (loop.prompt.token_ids, loop.prompt.lengths))
    rows = tf.range(tf.shape(part[0])[0])[:, None]  # (R, 1), indices of the rows in the batch

    def is_going(length, rows, part, given, results):
        return (length < loop.max_length) & (tf.size(rows) > 0)

    def advance(length, rows, part, given, results):
        length, part = _until_a_quarter_is_done(step, loop, length, part, given)
        _, token_ids, _, progress = part
        results = _map(
            lambda whole, part_rows: tf.tensor_scatter_nd_update(whole, rows, part_rows),
            results,
            (token_ids, progress),
        )
        going = tf.where(loop.search.unfinished(progress))
        rows, part, given = _map(lambda array: tf.gather_nd(array, going), (rows, part, given))
        return length, rows, part, given, results

    last, token_ids, state, progress = part
    state = (length, rows, (last, token_ids, state, progress), given, (token_ids, progress))
    *_, results = _while(is_going, advance, state)
    return results


def _until_a_quarter_is_done(step, loop, length, part, given):
    """Return the loop's variables once a quarter of the rows is finished."""
    fixed, prompt = given
    if prompt:
        loop = Loop(loop.search, loop.max_length, prompt=prompt, constraint=loop.constraint)

    def is_going(length, part):
        unfinished = loop.search.unfinished(part[-1])
        most = 3 * tf.size(unfinished, tf.int64) // 4
        return (length < loop.max_length) & (tf.math.count_nonzero(unfinished) > most)

    def advance(length, part):
        last, token_ids, state, progress = part
        (logits, *others), after = step(last, state | fixed)
        state = {name: after[name] for name in state}
        length, *part = loop.advance(logits, others, length, token_ids, state, progress)
        return length, tuple(part)

    return _while(is_going, advance, (length, part))


def _map(function, *structures):
    return tree.map_structure(function, *structures)


def _while(is_going, advance, carried):
    """Return TensorFlow's loop over tensors whose number of rows may change."""
    sizes = _map(
        lambda array: tf.TensorShape([None, *array.shape[1:]][: array.shape.rank]), carried
    )
    return tf.while_loop(is_going, advance, carried, shape_invariants=sizes)

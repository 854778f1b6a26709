"""A search in a TensorFlow graph, whose rows leave the batch when they are done.

`keras.ops.while_loop` keeps every row until the last one is done, as its shapes are fixed on JAX.
TensorFlow's need not be: here a loop goes on until a quarter of its rows are done, and those that
are not go on alone, in the next. So few long rows cost no steps of the others.
"""

import tensorflow as tf
from keras import tree

from seqkeras.decoding.loop import Loop


def run(step, loop, carried, fixed):
    """The loop from where it is to its end.

    Args:
        step: the decoder's step, see `seqkeras.decoding`.
        loop: a `Loop` without processors of its own but a prompt.
        carried: what `loop.begin` and `loop.advance` return.
        fixed: the entries of the state that are per source.

    Returns:
        token_ids: (B, K, T) of the beams.
        found: what the search has found.
    """
    length, *part = carried
    given = (fixed, () if loop.prompt is None else (loop.prompt.token_ids, loop.prompt.lengths))
    rows = tf.range(tf.shape(part[0])[0])[:, None]  # (R, 1), which are in the batch

    def is_going(length, rows, part, given, results):
        return (length < loop.max_length) & (tf.size(rows) > 0)

    def go_on(length, rows, part, given, results):
        length, part = _until_some_leave(step, loop, length, part, given)
        _, token_ids, _, found = part
        results = _map(
            lambda whole, own: tf.tensor_scatter_nd_update(whole, rows, own),
            results,
            (token_ids, found),
        )
        going = tf.where(loop.search.unfinished(found))
        rows, part, given = _map(lambda each: tf.gather_nd(each, going), (rows, part, given))
        return length, rows, part, given, results

    last, token_ids, state, found = part
    state = (length, rows, (last, token_ids, state, found), given, (token_ids, found))
    *_, results = _while(is_going, go_on, state)
    return results


def _until_some_leave(step, loop, length, part, given):
    """What is carried behind the steps in which over three quarters of the rows go on."""
    fixed, prompt = given
    if prompt:
        loop = Loop(loop.search, loop.max_length, prompt=prompt, constraint=loop.constraint)

    def is_going(length, part):
        unfinished = loop.search.unfinished(part[-1])
        most = 3 * tf.size(unfinished, tf.int64) // 4
        return (length < loop.max_length) & (tf.math.count_nonzero(unfinished) > most)

    def go_on(length, part):
        last, token_ids, state, found = part
        (logits, *others), after = step(last, state | fixed)
        state = {name: after[name] for name in state}
        length, *part = loop.advance(logits, others, length, token_ids, state, found)
        return length, tuple(part)

    return _while(is_going, go_on, (length, part))


def _map(function, *structures):
    return tree.map_structure(function, *structures)


def _while(is_going, go_on, carried):
    """TensorFlow's loop over tensors of any number of rows."""
    sizes = _map(lambda each: tf.TensorShape([None, *each.shape[1:]][: each.shape.rank]), carried)
    return tf.while_loop(is_going, go_on, carried, shape_invariants=sizes)

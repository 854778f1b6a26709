"""Greedy decoding: the most probable token at every step."""

from keras import ops

from seqkeras.decoding.loop import generate


def greedy(step, state, *, start_id, end_id, max_length):
    """As `seqkeras.decoding.loop.generate`, where each token is the arg-max."""

    def most_probable(log_probs):
        return ops.argmax(log_probs, axis=-1)

    return generate(
        step,
        state,
        most_probable,
        start_id=start_id,
        end_id=end_id,
        max_length=max_length,
    )

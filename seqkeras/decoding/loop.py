"""The one loop that generates token ids, for any decoder that keeps the step contract.

    step(token_ids, state) -> ((logits, weights), state)

`token_ids` is (B, K), the last token of each of K beams; `logits` (B, K, V);
`weights` are the decoder's attention, which the loop passes over. The state is a flat
dictionary of tensors. An entry is per *beam* (B, K, ...), reordered when beams are, or per *source*
(B, ...), computed once and never reordered. The loop knows no model and no text.
"""

import dataclasses

from keras import ops


@dataclasses.dataclass(frozen=True)
class StateEntry:
    """One tensor of a decoder's state.

    Args:
        name: its key in the state.
        per: "beam" or "source".
        shape: without batch and beam; a name stands for a length, as "source_length".
        dtype: of the tensor.
    """

    name: str
    per: str
    shape: tuple
    dtype: str = "float32"


def generate(step, state, choose, *, start_id, end_id, max_length):
    """Token ids chosen step by step, until every row has ended or is `max_length` long.

    Args:
        step: the decoder's step, as above, called with one beam.
        state: its initial state.
        choose: (B, V) log-probabilities -> (B,) token ids.
        start_id, end_id: the ids of `<bos>` and `<eos>`.
        max_length: the longest result, `<eos>` included.

    Returns:
        token_ids: (B, max_length) int32, `<eos>` included and zero after it.
        lengths: (B,) int32, `<eos>` included.
        scores: (B,) float32, the sums of the chosen tokens' log-probabilities.
    """
    batch_size = ops.shape(next(iter(state.values())))[0]
    rows = ops.zeros((batch_size,), "int32")
    positions = ops.arange(max_length)

    def unfinished(t, token, token_ids, lengths, scores, finished, state):
        return ops.logical_and(t < max_length, ops.logical_not(ops.all(finished)))

    def advance(t, token, token_ids, lengths, scores, finished, state):
        (logits, _), state = step(token[:, None], state)
        log_probs = ops.log_softmax(ops.cast(logits[:, 0], "float32"))  # (B, V)
        token = ops.where(finished, 0, ops.cast(choose(log_probs), "int32"))
        chosen = ops.take_along_axis(log_probs, token[:, None], axis=1)[:, 0]
        scores = scores + ops.where(finished, 0.0, chosen)
        lengths = lengths + ops.cast(ops.logical_not(finished), "int32")
        token_ids = ops.where(positions == t, token[:, None], token_ids)
        return (
            t + 1,
            token,
            token_ids,
            lengths,
            scores,
            finished | (token == end_id),
            state,
        )

    initial = (
        ops.convert_to_tensor(0),
        rows + start_id,
        rows[:, None] + 0 * positions,
        rows,
        ops.cast(rows, "float32"),
        rows > 0,
        state,
    )
    _, _, token_ids, lengths, scores, _, _ = ops.while_loop(unfinished, advance, initial)
    return token_ids, lengths, scores

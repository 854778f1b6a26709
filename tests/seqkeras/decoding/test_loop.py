import numpy as np
import pytest
from keras import ops

from seqkeras.decoding import generate, greedy
from tests import references
from tests.arrays import close, numbers

BOS, EOS = 2, 3
VOCAB_SIZE, SOURCES, MAX_LENGTH = 7, 5, 11


class RandomAutomaton:
    """A decoder that needs its state: logits depend on the source and on all tokens before.

    Per beam the state is a sum over the prefix, per source the row's number.
    """

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        self.table = random.normal(0, 2, (SOURCES, 13, VOCAB_SIZE)).astype("float32")
        self.table[:, :, EOS] += random.normal(0, 2, (SOURCES, 1))

    @property
    def initial_state(self):
        return {
            "hidden": np.zeros((SOURCES, 1), "int32"),
            "source": np.arange(SOURCES, dtype="int32"),
        }

    def step(self, token_ids, state):
        hidden = (3 * state["hidden"] + token_ids) % 13  # (B, 1)
        table = ops.take(self.table, state["source"], axis=0)  # (B, 13, V)
        logits = ops.take_along_axis(table, hidden[:, :, None], axis=1)
        return (logits, None), {**state, "hidden": hidden}

    def logits(self, source, prefix):
        hidden = 0
        for token in prefix:
            hidden = (3 * hidden + token) % 13
        return self.table[source, hidden]


@pytest.mark.parametrize("seed", range(3))
def test_greedy_decoding_is_the_plain_loop(seed):
    decoder = RandomAutomaton(seed)
    token_ids, lengths, scores = numbers(
        greedy(
            decoder.step,
            decoder.initial_state,
            start_id=BOS,
            end_id=EOS,
            max_length=MAX_LENGTH,
        )
    )
    assert token_ids.shape == (SOURCES, MAX_LENGTH)
    assert (token_ids.dtype, lengths.dtype, scores.dtype) == ("int32", "int32", "float32")
    for row in range(SOURCES):
        ids, score = references.greedy(decoder.logits, row, BOS, EOS, MAX_LENGTH)
        assert token_ids[row].tolist() == ids + [0] * (MAX_LENGTH - len(ids))
        assert lengths[row] == len(ids)
        close(scores[row], score)


def test_the_toy_decoders_end_at_many_lengths():
    lengths = {
        len(references.greedy(RandomAutomaton(seed).logits, row, BOS, EOS, MAX_LENGTH)[0])
        for seed in range(3)
        for row in range(SOURCES)
    }
    assert MAX_LENGTH in lengths and len(lengths) > 3


def test_the_loop_ends_with_the_last_row():
    steps = []

    def step(token_ids, state):
        steps.append(token_ids)
        logits = ops.one_hot(ops.where(state["left"] == 0, EOS, 5), VOCAB_SIZE)
        return (logits, None), {"left": state["left"] - 1}

    state = {"left": np.array([[1], [0], [2]], "int32")}
    _, lengths, _ = greedy(step, state, start_id=BOS, end_id=EOS, max_length=1000)
    assert numbers(lengths).tolist() == [2, 1, 3]
    assert len(steps) <= 3


def test_choose_sees_log_probabilities_and_has_the_last_word():
    decoder = RandomAutomaton(0)

    def least_probable_or_nothing(log_probs):
        total = ops.sum(ops.exp(log_probs), axis=-1)
        return ops.where(ops.abs(total - 1) < 1e-5, ops.argmin(log_probs, axis=-1), 0)

    token_ids, _, _ = numbers(
        generate(
            decoder.step,
            decoder.initial_state,
            least_probable_or_nothing,
            start_id=BOS,
            end_id=EOS,
            max_length=1,
        )
    )
    first = [decoder.logits(row, [BOS]).argmin() for row in range(SOURCES)]
    assert token_ids[:, 0].tolist() == first

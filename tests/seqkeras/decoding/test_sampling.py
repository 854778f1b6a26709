import itertools

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.decoding import BannedTokens, sample
from seqkeras.decoding.sampling import inverse_cdf
from tests.arrays import close, floats, numbers
from tests.references import decoding as references
from tests.refusals import refusals
from tests.seqkeras.decoding.toys import BOS, EOS, Automaton

IDS = {"start_id": BOS, "end_id": EOS}
ROWS = 20_000


def unigrams(logits):
    """A step that always gives these logits."""

    def step(token_ids, state):
        return (
            0.0 * ops.cast(token_ids, "float32")[..., None] + ops.convert_to_tensor(logits),
        ), state

    return step, {"rows": np.zeros((ROWS, 1), "float32")}


def assert_drawn_from(counts, probabilities):
    """Pearson's chi-square, at most five standard deviations above its mean."""
    expected = counts.sum() * probabilities
    possible = expected > 0
    assert not counts[~possible].any()
    freedom = possible.sum() - 1
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"top_k": 4},
        {"top_p": 0.8},
        {"temperature": 2.0, "top_k": 5, "top_p": 0.7},
        {"processors": [BannedTokens([1, 2])], "top_p": 0.9},
    ],
    ids=str,
)
def test_tokens_are_drawn_as_often_as_they_should_be(options):
    logits = 1.5 * floats(11)
    step, state = unigrams(logits)
    token_ids, _, scores = numbers(sample(step, state, max_length=1, seed=0, **IDS, **options))
    logits = np.asarray(logits, np.float64)
    if "processors" in options:
        logits[[1, 2]] = -np.inf
    logits = logits / options.get("temperature", 1.0)
    for keep, bound in ((references.top_k, "top_k"), (references.top_p, "top_p")):
        if bound in options:
            stay = list(keep(logits, options[bound]))
            logits = np.where(np.isin(np.arange(11), stay), logits, -np.inf)
    log_probs = references.log_softmax(logits)
    assert_drawn_from(np.bincount(token_ids[:, 0], minlength=11), np.exp(log_probs))
    close(scores, log_probs[token_ids[:, 0]])


def test_one_draw_says_nothing_of_the_next():
    step, state = unigrams(floats(3))
    token_ids, _, _ = numbers(sample(step, state, start_id=0, end_id=-1, max_length=3, seed=1))
    probabilities = np.exp(references.log_softmax(floats(3)))
    expected = [np.prod(probabilities[list(ids)]) for ids in itertools.product(range(3), repeat=3)]
    counts = np.bincount(token_ids @ [9, 3, 1], minlength=27)
    assert_drawn_from(counts, np.array(expected))


def test_sampling_follows_the_state_and_ends_each_row_for_itself():
    decoder = Automaton(0, sources=53)
    token_ids, lengths, scores = numbers(
        sample(decoder.step, decoder.initial_state, max_length=7, seed=2, temperature=0.8, **IDS)
    )
    assert len(set(lengths)) > 3
    for row, (ids, length) in enumerate(zip(token_ids, lengths)):
        assert EOS not in ids[: length - 1] and (ids[length - 1] == EOS or length == 7)
        assert not ids[length:].any()
        score = sum(
            references.log_softmax(decoder.logits(row, [BOS, *ids[:t]]) / 0.8)[ids[t]]
            for t in range(length)
        )
        close(scores[row], score, rtol=1e-4, atol=1e-5)


def test_a_seed_gives_one_answer_and_a_generator_another_each_time():
    decoder = Automaton(2, sources=13)

    def ids(seed):
        found = sample(decoder.step, decoder.initial_state, max_length=7, seed=seed, **IDS)
        return numbers(found)[0].tolist()

    assert ids(5) == ids(5) != ids(6)
    first, second = keras.random.SeedGenerator(5), keras.random.SeedGenerator(5)
    draws = [ids(first), ids(first)]
    assert draws[0] != draws[1]
    assert draws == [ids(second), ids(second)]
    assert ids(None) != ids(None)


@pytest.mark.parametrize(
    "uniform, expected",
    [(0.0, [1, 2, 0]), (0.2, [3, 2, 0]), (0.9, [4, 2, 1]), (1 - 2**-24, [4, 2, 1])],
)
def test_a_token_of_probability_zero_is_never_drawn_and_some_other_always(uniform, expected):
    rounded = 0.9  # as if rounding had lost so much of the sum
    probabilities = [[0, 0.1, 0, 0.7, 0.2, 0], [0, 0, 1, 0, 0, 0], [rounded / 2] * 2 + [0] * 4]
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.array(probabilities, "float32"))
    drawn = inverse_cdf(
        ops.convert_to_tensor(log_probs), ops.convert_to_tensor(np.full(3, uniform, "float32"))
    )
    assert numbers(drawn).tolist() == expected


def drawn(**options):
    """A call that is refused before its first step."""
    return lambda: sample(None, Automaton(0).initial_state, **IDS, **{"max_length": 3} | options)


test_what_can_not_be_sampled_is_refused_before_the_first_step = refusals(
    (drawn(temperature=0), "Temperature: temperature must be above 0 and finite; received 0."),
    (drawn(top_k=0), "TopK: k must be at least 1; received 0."),
    (drawn(top_p=1.5), "TopP: p must be above 0 and at most 1; received 1.5."),
    (drawn(max_length=0), "sample: max_length must be a positive integer; received 0."),
)

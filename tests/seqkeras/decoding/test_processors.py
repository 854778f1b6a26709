import numpy as np
import pytest

from seqkeras.decoding import (
    BannedTokens,
    ForcedToken,
    MinLength,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
    beam,
    greedy,
)
from tests import vectors
from tests.arrays import close, floats, numbers
from tests.references import decoding as references
from tests.seqkeras.decoding.toys import BOS, EOS, VOCAB_SIZE, Automaton, process

B, K, T, V = 2, 3, 5, 7


TOKEN_IDS = np.random.default_rng(0).integers(0, V, (B, K, T))


def staying(processor, logits, length=2):
    """For each row and beam the set of tokens that stay; those must keep their logits."""
    processed = process(processor, logits, TOKEN_IDS[: len(logits), : logits.shape[1]], length)
    stays = processed > -np.inf
    np.testing.assert_array_equal(processed[stays], logits[stays])
    return [[set(np.flatnonzero(beam).tolist()) for beam in row] for row in stays]


def of_each(function, logits):
    return [[function(beam) for beam in row] for row in logits]


@pytest.mark.parametrize("k", [1, 3, 7, 50])
def test_top_k_keeps_the_k_most_probable(k):
    logits = floats(B, K, V)
    expected = of_each(lambda each: references.top_k(each, k), logits)
    assert staying(TopK(k), logits) == expected


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.9, 0.999, 1.0])
def test_top_p_keeps_the_nucleus(p):
    logits = 3 * floats(B, K, V)
    expected = of_each(lambda each: references.top_p(each, p), logits)
    assert staying(TopP(p), logits) == expected


def test_a_nucleus_of_equals_keeps_all_of_them_and_banned_tokens_stay_banned():
    logits = np.array([[[-np.inf, 1, 1, 0, -np.inf, 1, 1]]], "float32")
    assert staying(TopP(0.3), logits) == [[{1, 2, 5, 6}]]
    assert staying(TopP(0.99), logits) == [[{1, 2, 3, 5, 6}]]
    assert staying(TopP(1), logits) == [[{1, 2, 3, 5, 6}]]


@pytest.mark.parametrize("length", [0, 3, 5])
def test_the_repetition_penalty_looks_at_each_beams_own_prefix(length):
    logits = floats(B, K, V)
    processed = process(RepetitionPenalty(1.7), logits, TOKEN_IDS, length)
    for row, each in np.ndindex(B, K):
        seen = TOKEN_IDS[row, each, :length].tolist()
        close(processed[row, each], references.repetition_penalty(logits[row, each], seen, 1.7))


def test_a_token_is_banned_and_the_end_comes_late_and_a_position_is_forced():
    logits = floats(B, K, V)
    rest = set(range(V))
    assert staying(BannedTokens([1, 5]), logits)[1][2] == rest - {1, 5}
    assert staying(BannedTokens([]), logits)[1][2] == rest
    for length, expected in ((0, rest - {EOS}), (2, rest - {EOS}), (3, rest)):
        assert staying(MinLength(4, EOS), logits, length)[1][2] == expected
    assert staying(ForcedToken(5, 3), logits)[0][1] == rest
    forced = process(ForcedToken(5, 3), logits, TOKEN_IDS, 3)
    np.testing.assert_array_equal(forced, np.where(np.arange(V) == 5, logits * 0, -np.inf))


def test_temperature_divides_the_logits():
    logits = floats(B, K, V)
    close(process(Temperature(0.7), logits, TOKEN_IDS, 2), logits / 0.7)


OURS = {
    "temperature": Temperature(0.7),
    "top_k": TopK(3),
    "top_p": TopP(0.8),
    "repetition_penalty": RepetitionPenalty(1.3),
    "banned_tokens": BannedTokens([2, 5]),
    # Hugging Face counts <bos> too.
    "min_length": MinLength(6, EOS),
    "min_length_reached": MinLength(4, EOS),
    "forced_end": ForcedToken(EOS, 3),
}


@pytest.mark.parametrize("name", OURS)
def test_processors_are_those_of_hugging_face(name):
    stored = vectors.load("decoding")
    bos, *chosen = stored["token_ids"].T
    if name == "repetition_penalty":
        chosen = [bos, *chosen]  # it penalises <bos> too
    token_ids = np.stack([*chosen, 0 * bos], axis=1)[:, None]
    processed = process(OURS[name], stored["logits"][:, None], token_ids, len(chosen))
    close(processed[:, 0], stored[f"processor/{name}"])


def test_every_name_is_compared_with_hugging_face():
    stored = [name for name in vectors.load("decoding") if name.startswith("processor/")]
    assert {name.split("/")[1] for name in stored} == OURS.keys()


@pytest.mark.parametrize("search", [greedy, beam])
def test_processors_work_in_the_order_in_which_they_are_given(search):
    decoder = Automaton(0)
    options = {"start_id": BOS, "end_id": EOS, "max_length": 7}
    if search is beam:
        options |= {"num_beams": 3, "state_entries": decoder.state_entries}
    processors = [
        RepetitionPenalty(9.0),
        BannedTokens([0, 1]),
        MinLength(6, EOS),
        ForcedToken(1, 0),
        ForcedToken(EOS, 6),
    ]
    token_ids, lengths, _ = numbers(
        search(decoder.step, decoder.initial_state, processors=processors, **options)
    )
    for ids, length in zip(token_ids.reshape(-1, 7), lengths.reshape(-1)):
        assert 6 <= length <= 7
        assert ids[0] == 1 and not set(ids[1:length]) & {0, 1}
        assert ids[length - 1] == EOS


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Temperature(0.0), "^Temperature: temperature must be above 0 and .*received 0.0"),
        (lambda: Temperature(np.inf), "temperature must be above 0 and finite; received inf"),
        (lambda: TopK(0), "^TopK: k must be at least 1; received 0.$"),
        (lambda: TopP(0.0), "^TopP: p must be above 0 and at most 1; received 0.0.$"),
        (lambda: TopP(1.1), "p must be above 0 and at most 1; received 1.1"),
        (lambda: TopP(np.nan), "p must be above 0 and at most 1; received nan"),
        (lambda: RepetitionPenalty(-1), "theta must be above 0 and finite; received -1"),
        (lambda: MinLength(-1, EOS), "min_length must not be negative; received -1"),
        (lambda: ForcedToken(5, -1), "position must not be negative; received -1"),
    ],
)
def test_what_can_not_be_processed_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "processor, message",
    [
        (BannedTokens(range(V)), "token_ids must leave one token; received all of them"),
        (BannedTokens([7]), r"token_ids must be from 0 to 6; received \(7,\)"),
        (BannedTokens([-1]), r"token_ids must be from 0 to 6; received \(-1,\)"),
        (ForcedToken(7, 0), "token_id must be from 0 to 6; received 7"),
        (MinLength(3, 7), "end_id must be from 0 to 6; received 7"),
    ],
)
def test_tokens_that_are_not_in_the_vocabulary_are_refused(processor, message):
    assert VOCAB_SIZE == V
    with pytest.raises(ValueError, match=f"^{type(processor).__name__}: {message}.$"):
        process(processor, floats(B, K, V), TOKEN_IDS, 0)

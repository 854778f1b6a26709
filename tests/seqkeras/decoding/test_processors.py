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
from tests.refusals import refusals
from tests.seqkeras.decoding.toys import BOS, EOS, Automaton, process

B, K, T, V = 2, 3, 5, 7


TOKEN_IDS = np.random.default_rng(0).integers(0, V, (B, K, T))


def staying(processor, logits, length=2):
    """For each row and beam the set of tokens that stay; those must keep their logits."""
    processed = process(processor, logits, TOKEN_IDS[: len(logits), : logits.shape[1]], length)
    stays = processed > -np.inf
    np.testing.assert_array_equal(processed[stays], logits[stays])
    return [[set(np.flatnonzero(beam).tolist()) for beam in row] for row in stays]


def test_a_nucleus_of_equals_keeps_all_of_them_and_banned_tokens_stay_banned():
    logits = np.array([[[-np.inf, 1, 1, 0, -np.inf, 1, 1]]], "float32")
    assert staying(TopP(0.3), logits) == [[{1, 2, 5, 6}]]
    assert staying(TopP(0.99), logits) == [[{1, 2, 3, 5, 6}]]
    assert staying(TopP(1), logits) == [[{1, 2, 3, 5, 6}]]


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


def processed(processor):
    return lambda: process(processor, floats(B, K, V), TOKEN_IDS, 0)


test_what_can_not_be_processed_is_refused = refusals(
    (lambda: Temperature(0.0), "Temperature: temperature must be above 0 and ...received 0.0"),
    (lambda: Temperature(np.inf), "temperature must be above 0 and finite; received inf"),
    (lambda: TopK(0), "TopK: k must be at least 1; received 0."),
    (lambda: TopP(0.0), "TopP: p must be above 0 and at most 1; received 0.0."),
    (lambda: TopP(1.1), "p must be above 0 and at most 1; received 1.1"),
    (lambda: TopP(np.nan), "p must be above 0 and at most 1; received nan"),
    (lambda: RepetitionPenalty(-1), "theta must be above 0 and finite; received -1"),
    (lambda: MinLength(-1, EOS), "min_length must not be negative; received -1"),
    (lambda: ForcedToken(5, -1), "position must not be negative; received -1"),
    (processed(BannedTokens(range(V))), "token_ids must leave one token; received all of them"),
    (processed(BannedTokens([7])), "BannedTokens: token_ids must be from 0 to 6; received (7,)"),
    (processed(BannedTokens([-1])), "token_ids must be from 0 to 6; received (-1,)"),
    (processed(ForcedToken(7, 0)), "ForcedToken: token_id must be from 0 to 6; received 7"),
    (processed(MinLength(3, 7)), "MinLength: end_id must be from 0 to 6; received 7"),
)

"""Serving's decoding gives what Hugging Face's gives: the vectors that hold the Keras decoders."""

import numpy as np
import pytest

from seqkeras.serving import decoding as ours
from seqkeras.serving.decoding import Candidates, MinLength, Prefix, Prompts, most_probable
from tests import vectors

PLACES, EOS = 101, 3
PROCESSORS = {
    "temperature": ours.Temperature(0.7),
    "top_k": ours.TopK(3),
    "top_p": ours.TopP(0.8),
    "repetition_penalty": ours.RepetitionPenalty(1.3),
    "banned_tokens": ours.BannedTokens((2, 5)),
    "min_length": MinLength(5, EOS),  # there <bos> counts
    "min_length_reached": MinLength(3, EOS),
    "forced_end": ours.ForcedToken(EOS, 3),
}
SEARCHES = {
    "greedy": {},
    "prompt": {"num_beams": 3, "n_best": 3},
    "never": {"num_beams": 3, "n_best": 3},
    "true": {"num_beams": 3, "n_best": 3, "early_stopping": True},
    "min_length": {"num_beams": 3, "n_best": 3},
}
STORED = vectors.load("decoding")


@pytest.mark.parametrize("name", PROCESSORS)
def test_processors_are_those_of_hugging_face(name):
    token_ids = STORED["token_ids"]
    rows = np.arange(len(token_ids))
    prefix = Prefix(token_ids[:, np.newaxis], rows, np.full(len(rows), token_ids.shape[1] - 1))
    processed = PROCESSORS[name](STORED["logits"][:, np.newaxis], prefix)
    assert processed.dtype == np.float32
    np.testing.assert_allclose(processed[:, 0], STORED[f"processor/{name}"], rtol=1e-6)


def table_candidates(token_ids, beam_index, k, state, reads):
    """Candidates by the place that the tokens so far lead to, which is the state."""
    places = (7 * state.reshape(-1)[beam_index] + token_ids) % PLACES
    logits = STORED["table"][places]
    if reads == {ours.LOGITS}:
        return Candidates(logits=logits), places
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return most_probable(log_probs, k), places


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("from_logits", [False, True])
def test_searches_are_those_of_hugging_face(name, from_logits):
    prompts = STORED["prompts"][:, : 3 if name == "prompt" else 1]
    expected_ids = STORED[f"beam/{name}/token_ids"]
    start, rest = prompts[:, :1], prompts[:, 1:]
    choose, state = None, np.zeros((len(prompts), 1), "int64")
    if from_logits or name == "min_length":
        rows = np.arange(len(prompts))
        generated = np.full(len(prompts), -rest.shape[1])
        prefix = Prefix(np.zeros((len(prompts), 1, 0), "int64"), rows, generated)
        processors = [MinLength(5, EOS)] if name == "min_length" else []
        choose = ours.FromLogits(prefix, processors, most_probable)
    max_lengths = np.full(len(prompts), expected_ids.shape[-1])
    results = ours.results_of(EOS, max_lengths, Prompts(rest.tolist()), **SEARCHES[name])
    for _ in ours.steps(table_candidates, state, ours.Search(results, start, choose)):
        pass
    found = results.finished()
    expected_scores = STORED[f"beam/{name}/scores"]
    for hypotheses, all_ids, scores in zip(found, expected_ids, expected_scores, strict=True):
        for hypothesis, ids in zip(hypotheses, all_ids, strict=True):
            own = hypothesis.token_ids + [EOS] * hypothesis.ended
            assert own == ids[: len(own)].tolist()
            assert not ids[len(own) :].any()
        np.testing.assert_allclose(
            [each.score for each in hypotheses], scores, rtol=1e-5, atol=1e-6
        )


def test_everything_stored_is_compared():
    names = {name.split("/", 1)[1].removesuffix("/token_ids") for name in STORED if "/" in name}
    names = {name.removesuffix("/scores") for name in names}
    assert names == PROCESSORS.keys() | SEARCHES.keys()

"""What the pictures of decoding show = the model without a cache, and the search of the library."""

import functools

import numpy as np
import pytest

from seqkeras import decoding
from seqkeras.analysis import small_translator as small
from seqkeras.analysis.beam_tree import beam_tree
from seqkeras.analysis.decoder_steps import CANDIDATES, TEXT, decoder_steps
from tests.arrays import close
from tests.conftest import others_long

ENDS = small.BOS, small.EOS, small.LONGEST
ENGLISH, CHINESE = small.vocabularies()
WORDS, TOKEN_IDS, LENGTHS = small.read(TEXT)


@pytest.fixture(scope="module")
def model():
    return small.train(steps=20, seed=3)


def log_probabilities(model, prefix):
    """Return (V,) of the token after a prefix of target ids, without a cache."""
    target_ids = np.array([[small.BOS, *prefix]])
    logits = model({"token_ids": TOKEN_IDS, "lengths": LENGTHS, "target_ids": target_ids})
    logits = np.asarray(logits)[0, -1].astype("float64")
    logits[list(model.never_generated)] = -np.inf
    return logits - np.log(np.exp(logits).sum())


def test_a_step_shows_the_model_s_attention_candidates_and_cache(model):
    steps = decoder_steps(model, TOKEN_IDS, LENGTHS, CHINESE, *ENDS)
    chosen = [CHINESE.index(step.candidates[0][0]) for step in steps]
    target_ids = np.array([[small.BOS, *chosen[:-1]]])
    inputs = {"token_ids": TOKEN_IDS, "lengths": LENGTHS, "target_ids": target_ids}
    heads = np.asarray(model.attention_weights(inputs)["cross"])[0, 0]
    for t, step in enumerate(steps):
        assert step.token == CHINESE[target_ids[0, t]] and step.cached == t + 1
        close(step.weights, heads[:, t].mean(axis=0), atol=1e-5)
        probabilities = np.exp(log_probabilities(model, chosen[:t]))
        best = sorted(range(len(CHINESE)), key=lambda index: -probabilities[index])[:CANDIDATES]
        assert [word for word, _ in step.candidates] == [CHINESE[index] for index in best]
        close(np.array([p for _, p in step.candidates]), probabilities[best], atol=1e-5)


@pytest.mark.parametrize("alpha", others_long([0.6, 0.0]))
def test_a_tree_has_the_scores_of_the_decoder(alpha, model):
    state = model.encode(TOKEN_IDS, LENGTHS, small.LONGEST)
    tree = beam_tree(model, state, 3, *ENDS, length_penalty=alpha)
    known = functools.cache(lambda prefix: log_probabilities(model, prefix))
    for prefix, value in (tree.totals | tree.scores).items():
        total = sum(known(prefix[:t])[prefix[t]] for t in range(len(prefix)))
        divisor = ((5 + len(prefix)) / 6) ** alpha if prefix in tree.scores else 1
        close(value, total / divisor, atol=1e-4)
    found, lengths, scores = decoding.beam(
        model.step, state, num_beams=3, n_best=3, length_penalty=alpha,
        start_id=small.BOS, end_id=small.EOS, max_length=small.LONGEST,
    )  # fmt: skip
    best = [tuple(map(int, row[:count])) for row, count in zip(np.asarray(found[0]), lengths[0])]
    assert best[0] == tree.best
    close(np.array([tree.scores[prefix] for prefix in best]), np.asarray(scores[0]), atol=1e-6)


def test_every_sentence_of_the_grammar_can_be_read_and_has_room():
    random = np.random.default_rng(3)
    for _ in range(500):
        words, translated = small.sentence(random)
        assert small.read(" ".join(words))[0] == words
        assert {*translated} <= {*CHINESE} and len(translated) < small.LONGEST

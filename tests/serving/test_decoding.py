import functools

import numpy as np
import pytest

from seqkeras.serving.decoding import Candidates, Prompts, Search, length_divisor, results_of, steps
from seqkeras.serving.text import BOS, EOS
from tests.references import decoding as loops
from tests.serving import references

VOCAB_SIZE, TARGET_LENGTH, SOURCE_LENGTH = 7, 5, 3


@functools.cache
def log_probs(seed, eos, source, prefix):
    logits = np.random.default_rng([seed, source, *prefix]).normal(0, 2, VOCAB_SIZE)
    logits[EOS] += eos
    logits[:EOS] = -np.inf
    return logits - np.log(np.exp(logits).sum())


class PrefixModel:
    """Gives every prefix of every source a distribution and attention weights of its own.

    As a step, its state is the list of (source, prefix) of each row.
    """

    def __init__(self, seed, eos=0.0):
        self.seed, self.eos = seed, eos
        self.batch_sizes = []

    def log_probs(self, source, prefix):
        return log_probs(self.seed, self.eos, source, prefix)

    def attention(self, source, prefix):
        return np.random.default_rng([self.seed, 99, source, *prefix]).dirichlet([1, 1, 1])

    def of(self, source):
        return lambda prefix: self.log_probs(source, prefix)

    def __call__(self, token_ids, beam_index, k, state, reads):
        self.batch_sizes.append(len(token_ids))
        rows = [
            (state[row][0], () if token == BOS else (*state[row][1], int(token)))
            for token, row in zip(token_ids.ravel(), beam_index.ravel())
        ]
        log_probs = np.stack([self.log_probs(*row) for row in rows])
        ids = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
        shape = (*token_ids.shape, ids.shape[1])
        weights = np.stack([self.attention(*row) for row in rows])
        candidates = Candidates(
            log_probs=np.take_along_axis(log_probs, ids, axis=1).reshape(shape),
            token_ids=ids.reshape(shape),
            attention_weights=weights.reshape(*token_ids.shape, SOURCE_LENGTH),
        )
        return candidates, rows

    def search(self, sources, **options):
        state = [(source, ()) for source in sources]
        return searched(self, state, len(state), **options)


def searched(step, state, batch_size, prompts=None, max_lengths=None, **options):
    start = np.full((batch_size, 1), BOS)
    max_lengths = np.full(batch_size, TARGET_LENGTH) if max_lengths is None else max_lengths
    results = results_of(EOS, max_lengths, prompts or Prompts(batch_size * [()]), **options)
    for _ in steps(step, state, Search(results, start)):
        pass
    return results.finished()


def without_eos(ids):
    return [token for token in ids if token != EOS]


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_that_holds_everything_finds_the_best_targets_there_are(seed, alpha):
    model = PrefixModel(seed)
    [found] = model.search([0], num_beams=3**TARGET_LENGTH, n_best=11, length_penalty=alpha)
    expected = references.all_targets(model.of(0), VOCAB_SIZE, TARGET_LENGTH, alpha)[:11]
    assert [h.token_ids for h in found] == [without_eos(ids) for _, ids in expected]
    np.testing.assert_allclose([h.score for h in found], [score for score, _ in expected])


@pytest.mark.parametrize("seed", range(11))
def test_a_beam_of_one_takes_the_most_probable_token_until_eos(seed):
    model = PrefixModel(seed)
    for source, [found] in enumerate(model.search(range(13), length_penalty=0.9)):
        ids, total = references.greedy(model.of(source), TARGET_LENGTH)
        assert found.token_ids == without_eos(ids)
        assert found.score == pytest.approx(total / length_divisor(len(ids), 0.9))


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 3.0])
@pytest.mark.parametrize("num_beams, n_best", [(2, 1), (3, 3), (5, 2)])
def test_stopping_early_changes_nothing(num_beams, n_best, alpha):
    for seed, eos in ((0, -1), (1, 0), (2, 1), (3, 2), (4, 3)):
        model = PrefixModel(seed, eos)
        answers = model.search(range(7), num_beams=num_beams, n_best=n_best, length_penalty=alpha)
        for source, found in enumerate(answers):
            best = references.beam_search(model.of(source), num_beams, TARGET_LENGTH, alpha)
            assert [h.token_ids for h in found] == [without_eos(ids) for _, ids in best[:n_best]]


def test_a_source_leaves_the_batch_when_no_beam_can_become_better():
    model = PrefixModel(seed=1, eos=1)
    together = model.search(range(17), num_beams=3)
    assert model.batch_sizes[0] == 17
    assert model.batch_sizes == sorted(model.batch_sizes, reverse=True)
    assert 0 < model.batch_sizes[-1] < 17
    steps = 0
    for source, found in enumerate(together):
        alone = PrefixModel(seed=1, eos=1)
        [expected] = alone.search([source], num_beams=3)
        assert [h.token_ids for h in found] == [h.token_ids for h in expected]
        steps += len(alone.batch_sizes)
    assert sum(model.batch_sizes) == steps


@pytest.mark.parametrize("num_beams, n_best", [(1, 1), (5, 3)])
def test_attention_follows_the_ancestry_of_each_hypothesis(num_beams, n_best):
    model = PrefixModel(seed=5, eos=1)
    for source, found in enumerate(model.search(range(11), num_beams=num_beams, n_best=n_best)):
        for hypothesis in found:
            ids = hypothesis.token_ids
            expected = [model.attention(source, ids[:t]) for t in range(len(ids))]
            assert hypothesis.attention_weights.shape == (len(ids), SOURCE_LENGTH)
            np.testing.assert_array_equal(
                hypothesis.attention_weights, np.reshape(expected, (len(ids), SOURCE_LENGTH))
            )


def test_fewer_are_returned_when_the_model_allows_fewer():
    def only_eos(token_ids, beam_index, k, state, reads):
        log_probs = np.full((*token_ids.shape, k), -np.inf)
        log_probs[..., 0] = 0.0
        ids = np.broadcast_to([EOS, 0, 1, 2][:k], log_probs.shape)
        return Candidates(log_probs, ids), state

    [found] = searched(only_eos, None, 1, num_beams=3, n_best=3)
    assert [(h.token_ids, h.score, h.attention_weights) for h in found] == [([], 0.0, None)]


PROMPTS = [[4, EOS, 5], [6], [], [5, 5, EOS], [EOS]]


@pytest.mark.parametrize("early_stopping", ["never", False, True])
@pytest.mark.parametrize("n_best", [1, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_beams_go_on_from_a_prompt_of_each_source(early_stopping, n_best, alpha):
    model = PrefixModel(seed=3)
    sources = [(source, prompt) for _ in range(3) for source, prompt in enumerate(PROMPTS)]
    found = model.search(
        [source for source, _ in sources],
        num_beams=3,
        n_best=n_best,
        length_penalty=alpha,
        early_stopping=early_stopping,
        prompts=Prompts([prompt for _, prompt in sources]),
    )

    def following(row, prefix):
        return model.log_probs(row, tuple(prefix[1:]))

    for hypotheses, (source, prompt) in zip(found, sources, strict=True):
        options = {"early_stopping": early_stopping, "prompt": prompt}
        beams = loops.beam_search(following, source, BOS, EOS, TARGET_LENGTH, 3, alpha, **options)
        scores, token_ids = zip(*beams[:n_best])
        assert [each.token_ids + [EOS] * each.ended for each in hypotheses] == [*token_ids]
        np.testing.assert_allclose([each.score for each in hypotheses], scores)

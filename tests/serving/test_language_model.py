"""A language model's session: caches that grow, and rows that leave."""

import dataclasses

import numpy as np
import pytest

from seqkeras.serving.decoding import Greedy, Prompts, Search, steps
from seqkeras.serving.manifest import BundleError, StateEntry, read_manifest
from seqkeras.serving.opening import Runtime
from seqkeras.serving.session import LanguageModel
from seqkeras.serving.text import BOS, EOS
from tests.serving.toy_language_model import TABLE, ToyLanguageModel, write_bundle

MODEL = ToyLanguageModel()
IDS = np.random.default_rng(0).integers(0, len(TABLE), (3, 7))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bundle(tmp_path_factory.mktemp("bundles") / "toy", MODEL)


@pytest.fixture(scope="module")
def graphs(folder):
    return LanguageModel(folder, read_manifest(folder), Runtime(threads=1))


def own(batch_size):
    return np.arange(batch_size)[:, np.newaxis]


def entries(state):
    return state.caches["entries"].numpy()


def test_a_cache_begins_empty_and_grows_by_the_tokens_given(graphs):
    state = graphs.begin(3)
    assert entries(state).shape == (3, 1, 0, 5)
    state = graphs.read(IDS[:, :4], state)
    assert entries(state).shape == (3, 1, 4, 5)
    candidates, state = graphs.step(IDS[:, 4:5], own(3), 99, state)
    assert entries(state).shape == (3, 1, 5, 5)
    expected = np.stack([MODEL.log_probs(row[:5]) for row in IDS])
    best = np.argsort(-expected, axis=1)
    np.testing.assert_array_equal(candidates.token_ids[:, 0], best)
    values = np.take_along_axis(expected, best, axis=1)
    np.testing.assert_allclose(candidates.log_probs[:, 0], values, rtol=1e-4, atol=1e-5)


def test_a_step_changes_no_state_before_it(graphs):
    state = graphs.read(IDS, graphs.begin(3))
    before = entries(state).copy()
    graphs.step(np.full((2, 2), BOS), np.array([[0, 0], [2, 2]]), 1, state)
    np.testing.assert_array_equal(entries(state), before)


def test_finished_texts_leave_the_batch(graphs):
    sizes = []

    def step(token_ids, *rest):
        sizes.append(len(token_ids))
        return graphs.step(token_ids, *rest)

    found = Greedy(EOS, np.array([3, 1, 5]), Prompts(3 * [()]))
    for _ in steps(step, graphs.begin(3), Search(found, IDS[:, np.newaxis])):
        pass
    assert sizes[:2] == [3, 2] and len(sizes) <= 5
    assert [len(each.token_ids) + each.ended for [each] in found.finished()][1] == 1


def test_a_state_that_the_graph_lacks_is_refused(folder):
    manifest = read_manifest(folder)
    state = (*manifest.state, StateEntry("position", "beam"))
    with pytest.raises(BundleError, match="it lacks next_position; it lacks position"):
        LanguageModel(folder, dataclasses.replace(manifest, state=state))

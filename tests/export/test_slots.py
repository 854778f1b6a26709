"""The second graph of a decoder's step, whose caches are written in place."""

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export.families import plan_export
from seqkeras.export.quantize import quantize
from seqkeras.models import GPT, RNNLanguageModel, Transformer
from seqkeras.serving.opening import Runtime
from seqkeras.serving.session import STEP, EncoderDecoder, LanguageModel
from seqkeras.serving.slots import ROLE
from tests.arrays import built
from tests.conftest import others_long
from tests.export.running import graphs_of
from tests.serving.exported import LETTERS

V = len(LETTERS)
WITHOUT = {
    "biases of distances": lambda: Transformer(V, V, 24, 1, 3, 40, max_length=12, positions="bias"),
    "no cache": lambda: RNNLanguageModel(V, 5, 6),
    "heads of 6": lambda: GPT(V, 24, 1, 4, 40, 12),
    "a window": lambda: GPT(V, 24, 1, 3, 40, 12, attention_window=2),
    "a prefix": lambda: GPT(V, 24, 1, 3, 40, 12, mask="prefix"),
    "vectors of distances": lambda: GPT(V, 24, 1, 3, 40, 12, positions="relative"),
}


@pytest.fixture
def in_both_ways(letters_bundle):
    """A function of a kind of pipeline: its graphs, whose steps write in place, and copy."""

    def opened(kind):
        folder = letters_bundle(kind)
        graphs = LanguageModel if kind == "Generate" else EncoderDecoder
        manifest = serving.load(folder).manifest
        return [graphs(folder, manifest, Runtime(threads=1, in_place=way)) for way in (True, False)]

    return opened


def graphs_of_steps(model, **options):
    """The graphs of a step alone, by role."""
    shapes = None if hasattr(model, "encode") else {"token_ids": (None, None)}
    signatures = plan_export(built(model, shapes)).graphs
    steps = {role: signatures[role] for role in (STEP, ROLE) if role in signatures}
    return graphs_of(steps, **options)


@pytest.mark.parametrize("name", others_long(WITHOUT, short=2))
def test_there_is_no_such_graph_with(name):
    assert {*graphs_of_steps(WITHOUT[name]())} == {STEP}


def test_there_is_none_of_standard_operators_alone():
    assert {*graphs_of_steps(GPT(V, 24, 1, 3, 40, 12), portable=True)} == {STEP}


def test_attention_is_one_operator_and_no_cache_is_copied():
    graphs = graphs_of_steps(GPT(V, 24, 2, 3, 40, 12))
    for graph in (graphs[ROLE], quantize(graphs, "int8")[ROLE]):
        counts = graph.node_counts()
        assert counts["GroupQueryAttention"] == 2
        assert "MultiHeadAttention" not in counts
        assert counts["Gather"] == 2  # of tokens and positions


@pytest.mark.parametrize("kind", ["Generate", "Translate"])
@pytest.mark.parametrize("num_beams", [1, 3])
def test_steps_give_what_steps_give_that_copy(kind, num_beams, in_both_ways):
    draw, both = np.random.default_rng(num_beams), in_both_ways(kind)
    assert [each.shares_steps for each in both] == [True, False]
    if kind == "Generate":
        states = [each.begin(4) for each in both]
    else:
        source, lengths = draw.integers(4, V, (4, 5)), np.array([5, 3, 1, 4])
        states = [each.encode(source, lengths) for each in both]
    beams, count = 1, 4
    for step in range(36):
        count = max(count - (step % 17 == 16), 1)
        sources = np.arange(count)[:, np.newaxis]
        beam_index = beams * sources + draw.integers(beams, size=(count, num_beams))
        token_ids = draw.integers(V, size=(count, num_beams))
        beams = num_beams
        found = [each.step(token_ids, beam_index, 3, state) for each, state in zip(both, states)]
        states = [state for _, state in found]
        ours, expected = (candidates for candidates, _ in found)
        np.testing.assert_array_equal(ours.token_ids, expected.token_ids)
        np.testing.assert_allclose(ours.log_probs, expected.log_probs, rtol=1e-4, atol=1e-5)


def test_several_tokens_follow_others(in_both_ways):
    draw, both = np.random.default_rng(0), in_both_ways("Generate")
    rows = np.arange(3)[:, np.newaxis]
    states = [each.begin(3) for each in both]
    for length in (5, 1, 4, 7):
        token_ids = draw.integers(V, size=(3, 1, length))
        found = [each.step(token_ids, rows, 2, state) for each, state in zip(both, states)]
        states = [state for _, state in found]
        ours, expected = (candidates for candidates, _ in found)
        np.testing.assert_allclose(ours.log_probs, expected.log_probs, rtol=1e-4, atol=1e-5)

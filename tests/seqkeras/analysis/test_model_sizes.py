"""Sizes of published models = the papers' formulas; int8 = the constants of exported graphs."""

import pytest

from seqkeras.analysis.model_sizes import MODELS, operations_of, parts_of, published
from seqkeras.export.families import plan_export
from seqkeras.export.quantize import quantize
from seqkeras.models import GPT, Bert, ClassificationHead, RNNLanguageModel, Transformer, WithHeads
from tests.arrays import randomize
from tests.conftest import others_long
from tests.export.running import graphs_of

T = 67


def attention(D):
    return 4 * (D * D + D)


def feed_forward(D, F):
    return D * F + F + F * D + D


def bert(V, P, D, L):
    return {
        "embeddings": (V + P + 2) * D,
        "attention": L * attention(D),
        "feed-forward": L * feed_forward(D, 4 * D),
        "normalisation": (1 + 2 * L) * 2 * D,
        "heads and others": D * D + D,
    }


def gpt(V, P, D, L, final=1):
    return {
        "embeddings": (V + P) * D,
        "attention": L * attention(D),
        "feed-forward": L * feed_forward(D, 4 * D),
        "normalisation": (2 * L + final) * 2 * D,
    }


def transformer(V, D, L):
    return {
        "embeddings": V * D,
        "attention": 3 * L * attention(D),
        "feed-forward": 2 * L * feed_forward(D, 4 * D),
        "normalisation": 5 * L * 2 * D,
    }


def products(D, F, keys):
    """Multiply-adds of one position of a block: four projections, scores, contexts, two layers."""
    return 4 * D * D + 2 * keys * D + 2 * D * F


EXPECTED = {  # parameters by part, multiply-adds of a text, and all parameters where published
    "bert-base": (bert(30522, 512, 768, 12), 12 * T * products(768, 3072, T) + 768**2, 109482240),
    "bert-large": (
        bert(30522, 512, 1024, 24),
        24 * T * products(1024, 4096, T) + 1024**2,
        335141888,
    ),
    "gpt": (gpt(40478, 512, 768, 12, 0), T * (12 * products(768, 3072, T) + 768 * 40478), None),
    "gpt2": (gpt(50257, 1024, 768, 12), T * (12 * products(768, 3072, T) + 768 * 50257), 124439808),
    "gpt2-medium": (
        gpt(50257, 1024, 1024, 24),
        T * (24 * products(1024, 4096, T) + 1024 * 50257),
        354823168,
    ),
    "gpt2-large": (
        gpt(50257, 1024, 1280, 36),
        T * (36 * products(1280, 5120, T) + 1280 * 50257),
        774030080,
    ),
    "gpt2-xl": (
        gpt(50257, 1024, 1600, 48),
        T * (48 * products(1600, 6400, T) + 1600 * 50257),
        1557611200,
    ),
    "transformer-base": (
        transformer(37000, 512, 6),
        T * (6 * (3 * products(512, 0, T) + 4 * 512 * 2048) + 512 * 37000),
        None,
    ),
    "transformer-big": (
        transformer(37000, 1024, 6),
        T * (6 * (3 * products(1024, 0, T) + 4 * 1024 * 4096) + 1024 * 37000),
        None,
    ),
}


# One of each kind, none of which is large.
FIRST = sorted(MODELS, key=lambda name: name not in ("bert-base", "gpt2"))


@pytest.mark.parametrize("name", others_long(FIRST))
def test_a_published_model_has_the_sizes_of_its_paper(name):
    by_part, multiply_adds, published_size = EXPECTED[name]
    model = published(name)
    parts = {part.name: part.parameters for part in parts_of(model)}
    assert parts == by_part and published_size in (None, sum(parts.values()))
    operations, steps = operations_of(model, T)
    assert operations.multiply_adds == multiply_adds and steps == T
    assert all(weight._value is None for weight in model.weights)  # no memory was taken


V = 61
TRAINED = {
    "lstm": lambda: RNNLanguageModel(V, 19, 23, num_layers=2, cell="lstm"),
    "bert": lambda: Bert(V, 32, 2, 2, 48, max_length=40),
    "head": lambda: WithHeads(
        Bert(V, 32, 2, 2, 48, max_length=40), {"label": ClassificationHead(3)}
    ),
    "transformer": lambda: Transformer(V, V, 32, 2, 2, 48, shared_embeddings="all"),
    "gpt": lambda: GPT(V, 32, 2, 2, 48, 37),
}


def constants(graphs):
    """Return the bytes of all constants of graphs; what two share counts once."""
    arrays = {name: array for graph in graphs.values() for name, array in graph.constants.items()}
    return sum(array.nbytes for array in arrays.values())


@pytest.mark.parametrize("name", others_long(TRAINED))
def test_int8_saves_the_bytes_that_the_exported_graphs_lose(name):
    model = TRAINED[name]()
    model.build(None)
    randomize(model)
    graphs = graphs_of(plan_export(model, max_length=6).graphs)
    saved = constants(graphs) - constants(quantize(graphs, "int8"))
    counted = sum(part.float32_bytes - part.int8_bytes for part in parts_of(model))
    assert counted - 8 <= saved <= counted  # one number, the least of a row, is new


def test_a_gru_is_as_large_in_int8_as_in_float32():
    model = RNNLanguageModel(V, 19, 23, cell="gru")
    model.build(None)
    assert all(part.float32_bytes == part.int8_bytes for part in parts_of(model))


def test_weights_that_layers_share_count_once():
    model = Transformer(V, V, 32, 1, 2, 48, shared_embeddings="all")
    model.build(None)
    assert sum(part.parameters for part in parts_of(model)) == model.count_params()

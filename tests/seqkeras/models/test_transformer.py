import numpy as np
import pytest

from seqkeras.models import Transformer
from tests.agreement import weights_of
from tests.arrays import close, numbers, randomize
from tests.conftest import others_long
from tests.references import transformer as references
from tests.refusals import refusals

SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
TOKENS = {
    "token_ids": np.array([[3, 8, 16, 2, 5], [7, 1, 4, 0, 0]]),
    "lengths": np.array([5, 3]),
    "target_ids": np.array([[1, 9, 6], [1, 12, 3]]),
}


def built(**options):
    model = Transformer(17, 13, **SIZES, max_length=7, **options)
    model(TOKENS)
    return randomize(model)


def expected_logits(model, row, positions, scale, **options):
    """One row without padding, in float64, from the references alone."""
    length = TOKENS["lengths"][row]
    source, target = (
        TOKENS["token_ids"][row : row + 1, :length],
        TOKENS["target_ids"][row : row + 1],
    )

    def embed(layer, token_ids):
        E = layer.get_weights()[0].astype("float64")
        return scale * E[token_ids] + positions(np.arange(token_ids.shape[1]))

    def stack(layer, x, mask, **more):
        norm = layer.final_norm and layer.final_norm.get_weights()
        blocks = [weights_of(block) for block in layer.blocks]
        return references.transformer_stack(x, mask, blocks, norm, **more, **options)

    encoded = stack(model.encoder, embed(model.source_embedding, source), None)
    hidden = stack(
        model.decoder,
        embed(model.target_embedding, target),
        references.causal(target.shape[1]),
        encoded=encoded,
    )
    return (hidden @ model.output_embedding.get_weights()[0].T)[0]


@pytest.mark.parametrize("positions", others_long(["paper", "tensor2tensor", "marian"]))
def test_the_transformer_is_the_papers_formula(positions):
    model = built(positions=positions)

    def vectors(places):
        return references.sinusoids(places, 6, positions)

    for row in range(2):
        expected = expected_logits(
            model, row, vectors, 6**0.5, activation="relu", pre_norm=False, epsilon=1e-5
        )
        close(model(TOKENS)[row], expected, rtol=1e-4, atol=1e-4)


def test_the_pre_norm_transformer_of_learned_positions_is_its_formula():
    options = {"activation": "gelu", "pre_norm": True, "epsilon": 1e-3}
    others = {"scale_embeddings": False, "shared_embeddings": "none", "output_bias": True}
    model = built(positions="learned", **others, **options)
    [bias] = [each for each in model.weights if each.shape == (13,)]
    table = model.positions.get_weights()[0]
    for row in range(2):
        expected = expected_logits(model, row, lambda places: table[places], 1, **options)
        close(model(TOKENS)[row], expected + numbers(bias), rtol=1e-4, atol=1e-4)


def test_embeddings_are_shared_as_they_are_said_to_be():
    counts = {}
    for shared in ("none", "target", "all"):
        model = Transformer(13, 13, **SIZES, shared_embeddings=shared)
        model({name: each % 13 for name, each in TOKENS.items()})
        matrices = [each for each in model.weights if each.shape == (13, 6)]
        counts[shared] = len(matrices)
    assert counts == {"none": 3, "target": 2, "all": 1}


SHORT = TOKENS["token_ids"], TOKENS["lengths"]
LONG = np.ones((2, 9), "int32"), np.array([9, 9])
test_lengths_beyond_the_learned_positions_are_refused = refusals(
    (
        lambda: built(positions="learned").encode(*SHORT, max_length=8),
        "Transformer: a sequence must have from 1 to max_length, 7, positions; received 8.",
    ),
    (lambda: built(positions="learned").encode(*LONG), "LearnedPositions: a sequence must have at"),
)


def test_sinusoids_have_no_last_position():
    assert built().encode(*LONG, max_length=8)

"""A GPT that predicts its tokens in any order, by two streams."""

import numpy as np
import pytest

from seqkeras.models import GPT, PermutedGPT
from seqkeras.pretrained import save_hugging_face
from tests.agreement import weights_of
from tests.arrays import close, numbers, randomize
from tests.references import transformer as references
from tests.refusals import refusals

SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
TOKENS = np.array([[3, 8, 16, 2, 5, 11, 9], [7, 1, 4, 13, 6, 2, 10]])
ORDER = np.array([[3, 0, 6, 1, 2, 5, 4], [6, 5, 4, 3, 2, 1, 0]])
LEFT_TO_RIGHT = np.tile(np.arange(7), (2, 1))
T = 7
every_kind = pytest.mark.parametrize("positions", ["learned", "paper", "relative", "bias"])


def built(**options):
    model = PermutedGPT(17, **SIZES, max_length=T, activation="gelu", **options)
    model.build()
    return randomize(model)


def places(order):
    """Of each position its place in the order; position T, behind the tokens, is the last one."""
    order = [*order.tolist(), T]
    return [order.index(position) for position in range(T + 1)]


def expected_logits(model, order, lengths=(T, T)):
    """Of both streams in float64, from the references alone: no position reads a query stream."""
    E, P, w = (
        weight.numpy().astype("float64")
        for weight in (model.embedding.embeddings, model.positions.embeddings, model.query)
    )
    content = E[TOKENS] + P[:T]
    query = np.tile(w + P[1 : T + 1], (2, 1, 1))
    mask = np.zeros((2, 2 * T, 2 * T), bool)
    for row in range(2):
        place = places(order[row])
        for s in range(lengths[row]):
            for t in range(T):
                mask[row, t, s] = place[s] <= place[t]
                mask[row, T + t, s] = place[s] < place[t + 1]
    hidden = references.transformer_stack(
        np.concatenate([content, query], axis=1),
        mask,
        [weights_of(block) for block in model.decoder.blocks],
        model.decoder.final_norm.get_weights() if model.config["pre_norm"] else None,
        pre_norm=model.config["pre_norm"],
        activation="gelu",
        epsilon=1e-5,
    )
    return hidden[:, T:] @ E.T


@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre_norm", "post_norm"])
def test_both_streams_are_the_papers_formula(pre_norm):
    model = built(pre_norm=pre_norm)
    logits = model({"token_ids": TOKENS, "order": ORDER})
    close(logits, expected_logits(model, ORDER), rtol=1e-4, atol=1e-5)
    lengths = np.array([7, 4])  # what is padded has no weight, wherever it is in the order
    logits = model({"token_ids": TOKENS, "order": ORDER, "lengths": lengths})
    close(logits, expected_logits(model, ORDER, lengths), rtol=1e-4, atol=1e-5)


@every_kind
def test_a_prediction_reads_all_that_is_earlier_in_the_order_and_nothing_else(positions):
    model = built(positions=positions)
    before = numbers(model({"token_ids": TOKENS, "order": ORDER}))
    for s in range(T):
        changed = TOKENS.copy()
        changed[:, s] = (changed[:, s] + 1) % 17
        after = numbers(model({"token_ids": changed, "order": ORDER}))
        for row, t in np.ndindex(2, T):
            place = places(ORDER[row])
            reads = not np.allclose(after[row, t], before[row, t], rtol=0, atol=1e-6)
            assert reads == (place[s] < place[t + 1])


@pytest.mark.parametrize("lengths", [None, np.array([7, 5])], ids=["whole", "padded"])
def test_a_blank_is_filled_from_both_sides(lengths):
    model, positions = built(), np.array([3, 1])
    logits = numbers(model.fill(TOKENS, positions, lengths))
    for row, position in enumerate(positions):
        order = [*(t for t in range(T) if t != position), position]
        inputs = {"token_ids": TOKENS, "order": np.array([order] * 2), "lengths": lengths}
        close(logits[row], numbers(model(inputs))[row, position - 1], atol=1e-5)


@every_kind
def test_without_an_order_it_reads_from_left_to_right_at_once_and_step_by_step(positions):
    model = built(positions=positions)
    expected = model({"token_ids": TOKENS, "order": LEFT_TO_RIGHT})
    close(model({"token_ids": TOKENS}), expected)
    read = np.where(np.arange(3) < np.array([[3], [2]]), TOKENS[:, :3], 0)
    logits, state = model.read(read, np.array([3, 2]))
    expected = numbers(expected)
    close(logits[0], expected[0, :3], atol=1e-5)
    close(logits[1, :2], expected[1, :2], atol=1e-5)
    for step in range(4):
        now = np.array([3, 2]) + step
        (logits,), state = model.step(np.take_along_axis(TOKENS, now[:, None], axis=1), state)
        close(numbers(logits)[:, 0], expected[np.arange(2), now], atol=1e-5)


def test_its_attention_is_of_the_query_stream():
    model = built()
    weights = numbers(model.attention_weights({"token_ids": TOKENS, "order": ORDER})["decoder"])
    assert weights.shape == (2, 2, 3, T, T)
    for row, t, s in np.ndindex(2, T, T):
        place = places(ORDER[row])
        assert (weights[row, :, :, t, s] > 0).all() == (place[s] < place[t + 1])


test_what_does_not_go_with_an_order_is_refused = refusals(
    (lambda: GPT(17, **SIZES, max_length=T, mask="permutation"), "mask ... PermutedGPT; rec"),
    (lambda: built(mask="prefix"), "PermutedGPT: mask must be one of ['causal']...'prefix'."),
    (lambda: built(attention_window=2), "TwoStreamBlock: attention_window must be None, ... 2."),
    (
        lambda: built()({"token_ids": TOKENS, "order": ORDER[:, :3]}),
        "order must have shape (batch, length), the order of the tokens of token_ids (2, 7)",
    ),
    (
        lambda: built()({"token_ids": TOKENS, "order": ORDER * 0}),
        "permutation_mask: order must hold every position from 0 to 6 once in each row",
    ),
    (
        lambda: built().fill(TOKENS, np.array([0, 7])),
        "PermutedGPT: positions must be from 1 to 6, as no logits are for the first token; ... 7].",
    ),
    (lambda: save_hugging_face(built(), "folder"), "PermutedGPT"),
)

"""A GPT that reads a prefix in both directions."""

import numpy as np
import pytest

from seqkeras.models import GPT
from tests.agreement import weights_of
from tests.arrays import close, numbers, randomize
from tests.references import transformer as references
from tests.refusals import refusals

SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
TOKENS = np.array([[3, 8, 16, 2, 5, 11, 9], [7, 1, 4, 13, 6, 2, 10]])
PREFIX = np.array([4, 2])
T = 7


def built(mask, **options):
    model = GPT(17, **SIZES, max_length=13, activation="gelu", mask=mask, **options)
    model.build()
    return randomize(model)


def expected_logits(model, mask):
    """Of the (B, T, T) mask, in float64, from the references alone."""
    E = model.embedding.get_weights()[0].astype("float64")
    x = E[TOKENS] + model.positions.get_weights()[0][:T]
    hidden = references.transformer_stack(
        x,
        mask,
        [weights_of(block) for block in model.decoder.blocks],
        model.decoder.final_norm.get_weights(),
        pre_norm=True,
        activation="gelu",
        epsilon=1e-5,
    )
    return hidden @ E.T


def mask_of(sees):
    """A (B, T, T) mask of a rule for row, query and key."""
    return np.array([[[sees(b, t, s) for s in range(T)] for t in range(T)] for b in range(2)])


@pytest.mark.parametrize("window", [None, 2])
def test_a_prefix_is_read_both_ways_and_what_follows_one_way(window):
    model = built("prefix", attention_window=window)
    near = T if window is None else window
    mask = mask_of(lambda b, t, s: (s <= t or s < PREFIX[b]) and abs(t - s) <= near)
    logits = model({"token_ids": TOKENS, "prefix_lengths": PREFIX})
    close(logits, expected_logits(model, mask), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positions", ["learned", "paper", "relative", "bias"])
@pytest.mark.parametrize("window", [None, 2])
def test_a_prefix_is_read_and_gone_on_from_step_by_step(window, positions):
    model = built("prefix", attention_window=window, positions=positions)
    expected = numbers(model({"token_ids": TOKENS, "prefix_lengths": PREFIX}))
    prompt = np.where(np.arange(4) < PREFIX[:, None], TOKENS[:, :4], 0)
    logits, state = model.read(prompt, PREFIX, prefix_lengths=PREFIX)
    for row, length in enumerate(PREFIX):
        close(logits[row, :length], expected[row, :length], rtol=1e-4, atol=1e-5)
    for step in range(3):
        token_ids = np.take_along_axis(TOKENS, (PREFIX + step)[:, None], axis=1)
        (logits,), state = model.step(token_ids, state)
        behind = expected[np.arange(2), PREFIX + step]
        close(numbers(logits)[:, 0], behind, rtol=1e-4, atol=1e-5)


def behind_three():
    model = built("prefix")
    _, state = model.read(TOKENS[:, :3])
    model.read(TOKENS[:, 3:], state=state, prefix_lengths=PREFIX)


FIRST = "GPT: prefix_lengths must be of the first piece"
test_what_a_mask_has_no_use_for_is_refused = refusals(
    (lambda: built("xl"), "GPT: mask must be one of ['causal', 'prefix'], ...'xl'."),
    (lambda: built("prefix")({"token_ids": TOKENS}), "GPT: inputs must hold ['prefix_lengths']; r"),
    (
        lambda: built("causal")({"token_ids": TOKENS, "prefix_lengths": PREFIX}),
        "GPT: inputs must be among ...; received ['prefix_lengths'], which the model does not read",
    ),
    (
        lambda: built("causal").read(TOKENS, prefix_lengths=PREFIX),
        f"{FIRST}...; ... for 'causal', after 0 tokens.",
    ),
    (behind_three, f"{FIRST}...; ... for 'prefix', after 3 tokens."),
)

"""How much of a file is held out."""

from types import SimpleNamespace

import pytest

from seqkeras.training.parts.splitting import split


@pytest.mark.parametrize(
    ("count", "share", "size", "held_out"),
    [
        (0, None, None, 0),
        (40, None, None, 4),
        (40, 0.5, None, 20),
        (200_000, None, None, 10_000),
        (200_000, 0.1, None, 20_000),
        (20_000, None, 400_000, 500),  # groups of 20
    ],
)
def test_a_tenth_is_held_out_but_at_most_ten_thousand(count, share, size, held_out):
    options = SimpleNamespace(held_out=share, seed=0, file="rows.csv")
    examples = [*range(count)]
    train, held = split(examples, options, size=size)
    assert len(held) == held_out and sorted([*train, *held]) == examples

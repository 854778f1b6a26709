"""The option of what tells a Transformer where tokens stand."""

from typing import Any

import click

from seqkeras.training.options import option
from seqkeras.training.options.spaces import OTHER_CHOICE

# Kind -> the value of `positions` of a model.
POSITION_KINDS = {
    "sinusoid": "paper",
    "learned": "learned",
    "relative": "relative",
    "bias": "bias",
}
OF_DISTANCES = ("relative", "bias")  # the kinds that limit no length, and need no start


def position_kind_option(of: str, default: str) -> Any:
    """Return the option --position-kind.

    Args:
        of: what has positions.
        default: what the help says of it.
    """
    return option(
        None,
        click.Choice([*POSITION_KINDS]),
        f"Positions of {of}: vectors (sinusoid, learned), vectors of distances up to 16 in "
        "self-attention (relative), or biases of distances up to 128 (bias). relative and bias "
        f"limit no length. Default: {default}.",
        search=OTHER_CHOICE,
    )

"""What tells a Transformer where tokens stand, and the options that it alone has."""

from collections.abc import Iterable
from typing import Any

import click

from seqkeras.training.options import Options, option, shown
from seqkeras.training.options.spaces import OTHER_CHOICE

# Kind -> the value of `positions` of a model.
POSITION_KINDS = {
    "sinusoid": "paper",
    "learned": "learned",
    "relative": "relative",
    "bias": "bias",
}
OF_DISTANCES = ("relative", "bias")  # the kinds that limit no length, and need no start


def position_kind_option(what: str, default: str) -> Any:
    """Return the option --position-kind.

    Args:
        what: what has positions.
        default: what the help says of it.
    """
    return option(
        None,
        click.Choice([*POSITION_KINDS]),
        f"Positions of {what}: vectors (sinusoid, learned), vectors of distances up to 16 in "
        "self-attention (relative), or biases of distances up to 128 (bias). relative and bias "
        f"limit no length. Default: {default}.",
        search=OTHER_CHOICE,
    )


def problems_of_transformers(options: Options, kind: str) -> Iterable[str]:
    """Return a sentence for each option of a Transformer that is given to another model.

    Args:
        options: options with `attention_window` and `position_kind`.
        kind: the name of the option that chooses a Transformer.
    """
    chosen = getattr(options, kind)
    if chosen == "transformer":
        return
    for name in ("attention_window", "position_kind"):
        if getattr(options, name) is not None:
            flag = shown(kind)
            yield f"{shown(name)} is for {flag} transformer; leave it out with {flag} {chosen}."

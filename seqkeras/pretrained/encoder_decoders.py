"""What the families of encoder-decoders share: the form of a `Transformer`, and ids of tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from seqkeras.models import Bert, Transformer

TOKENS = ("pad_token_id", "eos_token_id", "decoder_start_token_id")  # a model does not know them


def options_of(model: Transformer) -> dict[str, Any]:
    """Return name -> value of the options that a family writes or requires."""
    options = {**model.sizes, **model.options, **model.block_options}
    return {**options, "num_layers": model.num_layers}


def problems_of_form(
    model: Transformer, fixed: Mapping[str, Any], shared: Collection[str]
) -> list[str]:
    """Return what keeps a `Transformer` from being a family's, in words.

    Args:
        model: the `Transformer`.
        fixed: option -> the one value that the family has.
        shared: values of shared_embeddings that the family has.
    """
    ours = options_of(model)
    problems = [
        f"{name} must be {value!r}; received {ours[name]!r}"
        for name, value in fixed.items()
        if ours[name] != value
    ]
    if ours["shared_embeddings"] not in shared:
        problems.append(
            f"shared_embeddings must be {' or '.join(map(repr, shared))}; received "
            f"{ours['shared_embeddings']!r}"
        )
    if isinstance(model.encoder, Bert):
        problems.append("the encoder must be like the decoder; received a Bert")
    return problems


def token_ids_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `TOKENS`."""
    return {name: config[name] for name in TOKENS}

"""A decoder that begins with the weights of an encoder."""

from __future__ import annotations

import numpy as np

from seqkeras.models import Bert, Transformer

SAME = {  # option of a `Transformer` -> option of a `Bert`, or what it must be
    "target_vocab_size": "vocab_size",
    "hidden_dim": "hidden_dim",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "feed_forward_dim": "feed_forward_dim",
    "activation": "activation",
    "epsilon": "epsilon",
}
FIXED = {
    "positions": "learned",
    "shared_embeddings": "target",
    "scale_embeddings": False,
    "embedding_norm": True,
    "pre_norm": False,
    "norm": "layer",
    "use_bias": True,
    "gated": False,
    "head_dim": None,
}


def decoder_options(bert: Bert) -> dict:
    """Return the options of a `Transformer` whose decoder can begin with the weights of a `Bert`.

    Args:
        bert: a `Bert` of learned positions.

    Raises:
        ValueError: if it has others.
    """
    if bert.config["positions"] != "learned":
        raise ValueError(
            "decoder_options: the encoder's positions must be learned; received "
            f"{bert.config['positions']!r}."
        )
    sizes = {ours: bert.config[theirs] for ours, theirs in SAME.items()}
    return {**sizes, "max_length": bert.config["max_length"], **FIXED}


def start_decoder(model: Transformer, bert: Bert) -> None:
    """Give the decoder of a `Transformer` the weights of a `Bert` where it has the same.

    Embeddings of tokens, positions (with the segment 0 added), the norm after them, and each
    block's self-attention, feed-forward layers and norms are the encoder's; the attention to the
    source begins at random, as in the paper.

    Args:
        model: a built `Transformer`, with the `decoder_options` of the `Bert`.
        bert: a built `Bert`.

    Raises:
        ValueError: if an option is another one, or the decoder has more positions.

    Reference: Rothe et al. 2020, section 3, BERT2BERT, https://arxiv.org/abs/1907.12461
    """
    config = model.get_config()
    expected = decoder_options(bert)
    most = expected.pop("max_length")
    if config["max_length"] > most:
        raise ValueError(
            f"start_decoder: max_length must be at most the encoder's, {most}; received "
            f"{config['max_length']}."
        )
    for name, value in expected.items():
        if config[name] != value:
            raise ValueError(
                f"start_decoder: {name} must be {value!r}, as the encoder has it; received "
                f"{config[name]!r}."
            )
    model.target_embedding.set_weights(bert.embedding.get_weights())
    first = bert.config["first_position"]
    positions = np.array(bert.positions.get_weights()[0])[first:][: config["max_length"]]
    if bert.segment_embedding is not None:
        positions = positions + bert.segment_embedding.get_weights()[0][0]
    model.positions.set_weights([positions])
    model.embedding_norm.set_weights(bert.embedding_norm.get_weights())
    for ours, theirs in zip(model.decoder.blocks, bert.encoder.blocks, strict=True):
        for part in ("attention", "attention_norm", "feed_forward", "feed_forward_norm"):
            getattr(ours, part).set_weights(getattr(theirs, part).get_weights())

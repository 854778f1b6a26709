"""Hugging Face's Marian translation models. Encoders and decoders of two sizes are left out."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING

from seqkeras.models import Transformer
from seqkeras.pretrained import links as lines
from seqkeras.pretrained.assignment import ROW, Link
from seqkeras.pretrained.config import Field, read_fields, write_fields
from seqkeras.pretrained.encoder_decoders import (
    TOKENS,
    options_of,
    problems_of_form,
    token_ids_of,
)
from seqkeras.pretrained.family import Description, Family, Plan

if TYPE_CHECKING:
    import keras

    from seqkeras.pretrained.config import Config

FIELDS = (
    Field("vocab_size", "source_vocab_size", "size", 58101),
    Field("d_model", "hidden_dim", "size", 1024),
    Field("encoder_layers", "num_layers", "layers", 12),
    Field("encoder_attention_heads", "num_heads", "size", 16),
    Field("encoder_ffn_dim", "feed_forward_dim", "size", 4096),
    Field("max_position_embeddings", "max_length", "size", 1024),
    Field("activation_function", "activation", "activation", "gelu"),
    Field("dropout", "dropout", "rate", 0.1),
    Field("attention_dropout", "attention_dropout", "rate", 0.0),
    Field("activation_dropout", "activation_dropout", "rate", 0.0),
)
SIZES = {"layers": "num_layers", "attention_heads": "num_heads", "ffn_dim": "feed_forward_dim"}
BIAS = "final_logits_bias"
FIXED = {
    "positions": "marian",
    "pre_norm": False,
    "epsilon": 1e-5,
    "attention_window": None,
    "embedding_norm": False,
    "norm": "layer",
    "use_bias": True,
    "gated": False,
    "head_dim": None,
}
ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")
ENCODER = {
    "attention": tuple(f"self_attn.{part}" for part in ATTENTION),
    "attention_norm": "self_attn_layer_norm",
    "inner": "fc1",
    "outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
DECODER = {
    **ENCODER,
    "cross_attention": tuple(f"encoder_attn.{part}" for part in ATTENTION),
    "cross_norm": "encoder_attn_layer_norm",
}
# Made from a formula, which older files hold all the same.
HARMLESS = (r"(en|de)coder\.embed_positions\.weight",)


def plan(config: Config, architecture: str, tensors: Collection[str], heads: bool) -> Plan:
    arguments = read_fields(config, FIELDS)
    config.heads(
        "d_model", arguments["hidden_dim"], "encoder_attention_heads", arguments["num_heads"]
    )
    for name, ours in SIZES.items():
        config.fixed(f"decoder_{name}", arguments[ours], f"encoder_{name}")
    config.fixed("tie_word_embeddings", True)
    shared = config.flag("share_encoder_decoder_embeddings", True)
    target_vocab_size = arguments["source_vocab_size"]
    if shared:
        config.fixed("decoder_vocab_size", target_vocab_size, "vocab_size")
    else:
        target_vocab_size = config.size("decoder_vocab_size", target_vocab_size)
    arguments |= {
        **FIXED,
        "target_vocab_size": target_vocab_size,
        "shared_embeddings": "all" if shared else "target",
        "scale_embeddings": config.flag("scale_embedding", False),
        "output_bias": BIAS in tensors,
        "never_generated": _never_generated(config),
    }
    return Plan(lambda dtype: Transformer(**arguments, dtype=dtype), HARMLESS)


def _never_generated(config):
    """Return the bad words of one token; bad words of several tokens are the caller's."""
    words = config.get("bad_words_ids", [])
    if not isinstance(words, list) or not all(isinstance(word, list) for word in words):
        config.refuse(f"bad_words_ids must be a list of lists; received {words!r}")
        return []
    return [word[0] for word in words if len(word) == 1]


def links(model: Transformer) -> list[Link]:
    """Return the name map; encoder and decoder have separate embeddings, or share one table."""
    source, target = model.source_embedding.embeddings, model.target_embedding.embeddings
    tables = {"encoder": source, "decoder": target}
    if model.options["shared_embeddings"] == "all":
        aliases = [f"{part}.embed_tokens.weight" for part in tables]
        all_links = [Link("shared.weight", (target,), aliases=(*aliases, "lm_head.weight"))]
    else:
        all_links = [
            Link("encoder.embed_tokens.weight", (source,)),
            Link("decoder.embed_tokens.weight", (target,), aliases=("lm_head.weight",)),
        ]
    for part, stack, names in (
        ("encoder", model.encoder, ENCODER),
        ("decoder", model.decoder, DECODER),
    ):
        for number, block in enumerate(stack.blocks):
            all_links += lines.block(f"{part}.layers.{number}.", names, block)
    if model.output_bias is not None:
        all_links.append(Link(BIAS, (model.output_bias,), ROW))
    return all_links


def describe(model: keras.Model) -> Description | None:
    if not isinstance(model, Transformer) or model.block_options["norm"] == "rms":  # T5's
        return None
    if problems := problems_of_form(model, FIXED, ("all", "target")):
        raise ValueError(
            "save_hugging_face: a Transformer must be of Marian's form:\n  " + "\n  ".join(problems)
        )
    ours = options_of(model)
    return Description(
        "MarianMTModel",
        {
            **write_fields(ours, FIELDS),
            **{f"decoder_{name}": ours[size] for name, size in SIZES.items()},
            "decoder_vocab_size": ours["target_vocab_size"],
            "share_encoder_decoder_embeddings": ours["shared_embeddings"] == "all",
            "scale_embedding": ours["scale_embeddings"],
            "is_encoder_decoder": True,
        },
        required=TOKENS,
        generation=functools.partial(_generation, ours["never_generated"]),
    )


def _generation(never_generated, config):
    """Return ids of tokens, and what is never generated: words of several tokens are the
    caller's."""
    words = [word for word in config.get("bad_words_ids") or () if len(word) > 1]
    return {
        **token_ids_of(config),
        "bad_words_ids": [*([token_id] for token_id in never_generated), *words] or None,
    }


MARIAN = Family(
    "marian",
    ("MarianModel", "MarianMTModel"),
    base="model.",
    outside=(BIAS, "lm_head."),
    plan=plan,
    links=links,
    describe=describe,
)

"""Hugging Face's T5, also version 1.1. Encoders and decoders of two depths are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING

from seqkeras.models import Transformer
from seqkeras.pretrained.assignment import LINEAR, LINEAR_OF_HEADS, SAME, Link
from seqkeras.pretrained.config import THEIR_ACTIVATIONS, Field, read_fields, write_fields
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
    Field("vocab_size", "source_vocab_size", "size", 32128),
    Field("d_model", "hidden_dim", "size", 512),
    Field("d_kv", "head_dim", "size", 64),
    Field("d_ff", "feed_forward_dim", "size", 2048),
    Field("num_layers", "num_layers", "layers", 6),
    Field("num_heads", "num_heads", "size", 8),
    Field("dropout_rate", "dropout", "rate", 0.1),
    Field("layer_norm_epsilon", "epsilon", "rate", 1e-6),
)
BUCKETS = {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}
FIXED = {
    "positions": "bias",
    "pre_norm": True,
    "norm": "rms",
    "use_bias": False,
    "scale_embeddings": False,
    "embedding_norm": False,
    "output_bias": False,
    "attention_window": None,
}
FEED_FORWARDS = {  # the field feed_forward_proj -> activation, gated
    "relu": ("relu", False),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
    "gelu": ("gelu", False),
    "silu": ("silu", False),
}
ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}
HARMLESS = (r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",)


def plan(config: Config, architecture: str, tensors: Collection[str], heads: bool) -> Plan:
    arguments = read_fields(config, FIELDS)
    config.fixed("num_decoder_layers", arguments["num_layers"], "num_layers")
    for name, value in BUCKETS.items():
        config.fixed(name, value)
    config.fixed("is_encoder_decoder", True)
    kind = config.choice("feed_forward_proj", "relu", FEED_FORWARDS) or "relu"
    activation, gated = FEED_FORWARDS[kind]
    config.fixed("dense_act_fn", THEIR_ACTIVATIONS[activation], "feed_forward_proj")
    tied = config.flag("tie_word_embeddings", True)
    tied = config.flag("scale_decoder_outputs", tied) and tied  # as newer files say it
    arguments |= {
        **FIXED,
        "target_vocab_size": arguments["source_vocab_size"],
        "max_length": config.size("max_length", 512),
        "shared_embeddings": "all" if tied else "source",
        "activation": activation,
        "gated": gated,
        "attention_dropout": arguments["dropout"],
        "activation_dropout": arguments["dropout"],
        "never_generated": [config.size("pad_token_id", 0, 0)],
    }
    return Plan(lambda dtype: Transformer(**arguments, dtype=dtype), HARMLESS)


def links(model: Transformer) -> list[Link]:
    """Return the name map.

    T5 divides scores by nothing, and the logits of tied embeddings by sqrt(D): the query's kernel
    and the decoder's last norm hold these factors here.
    """
    shared = model.target_embedding.embeddings
    tied = model.options["shared_embeddings"] == "all"
    aliases = [f"{part}.embed_tokens.weight" for part in ("encoder", "decoder")]
    all_links = [
        Link("shared.weight", (shared,), aliases=(*aliases, *(["lm_head.weight"] if tied else ())))
    ]
    if not tied:
        output = (model.output_embedding.embeddings,)
        all_links.append(Link("lm_head.weight", output, aliases=("shared.weight",)))
    for part, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        bias = f"{part}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        all_links.append(Link(bias, (stack.distance_bias.embeddings,)))
        for number, block in enumerate(stack.blocks):
            all_links += _block(f"{part}.block.{number}.layer", block)
        scale = model.block_options["hidden_dim"] ** -0.5 if tied and part == "decoder" else 1.0
        norm = dataclasses.replace(SAME, factor=scale)
        all_links.append(Link(f"{part}.final_layer_norm.weight", (stack.final_norm.scale,), norm))
    return all_links


def _block(prefix, block):
    cross = getattr(block, "cross_attention", None)
    all_links = _attention(f"{prefix}.0.SelfAttention", block.attention)
    all_links.append(Link(f"{prefix}.0.layer_norm.weight", (block.attention_norm.scale,)))
    if cross is not None:
        all_links += _attention(f"{prefix}.1.EncDecAttention", cross)
        all_links.append(Link(f"{prefix}.1.layer_norm.weight", (block.cross_norm.scale,)))
    feed, number = block.feed_forward, 1 if cross is None else 2
    parts = {"wi": feed.inner, "wo": feed.outer}
    if feed.gated:
        parts = {"wi_0": feed.inner, "wi_1": feed.gate, "wo": feed.outer}
    dense = f"{prefix}.{number}.DenseReluDense"
    all_links += [
        Link(f"{dense}.{name}.weight", (layer.kernel,), LINEAR) for name, layer in parts.items()
    ]
    return [
        *all_links,
        Link(f"{prefix}.{number}.layer_norm.weight", (block.feed_forward_norm.scale,)),
    ]


def _attention(prefix, layer):
    layouts = {
        "q": dataclasses.replace(LINEAR, factor=layer.head_dim**0.5),
        "o": LINEAR_OF_HEADS,
    }
    return [
        Link(
            f"{prefix}.{name}.weight",
            (getattr(layer, f"{ours}_kernel"),),
            layouts.get(name, LINEAR),
        )
        for name, ours in ATTENTION.items()
    ]


def describe(model: keras.Model) -> Description | None:
    if not isinstance(model, Transformer) or model.block_options["norm"] != "rms":
        return None
    ours = options_of(model)
    problems = problems_of_form(model, FIXED, ("all", "source"))
    form = ours["activation"], ours["gated"]
    kind = next((name for name, known in FEED_FORWARDS.items() if known == form), None)
    if kind is None:
        problems.append(f"feed-forward layers must be one of {[*FEED_FORWARDS]}; received {form}")
    if problems:
        raise ValueError(
            "save_hugging_face: a Transformer of RMS norms must be of T5's form:\n  "
            + "\n  ".join(problems)
        )
    return Description(
        "T5ForConditionalGeneration",
        {
            **write_fields({**ours, "head_dim": model.decoder.blocks[0].head_dim}, FIELDS),
            **BUCKETS,
            "num_decoder_layers": ours["num_layers"],
            "feed_forward_proj": kind,
            "tie_word_embeddings": ours["shared_embeddings"] == "all",
            "scale_decoder_outputs": ours["shared_embeddings"] == "all",
            "is_encoder_decoder": True,
        },
        required=TOKENS,
        generation=token_ids_of,
    )


T5 = Family(
    "t5",
    ("T5Model", "T5ForConditionalGeneration"),
    base="",
    outside=("lm_head.",),
    plan=plan,
    links=links,
    describe=describe,
)

"""Hugging Face's GPT-2, whose logits are made of its token embeddings.

Heads other than the language model's, and cross-attention, are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from seqkeras.models import GPT, PermutedGPT
from seqkeras.pretrained import links as lines
from seqkeras.pretrained.assignment import MATRIX, MATRIX_OF_HEADS, SAME, VECTOR, Link
from seqkeras.pretrained.config import Field, read_fields, write_fields
from seqkeras.pretrained.family import Description, Family, Plan

if TYPE_CHECKING:
    import keras

    from seqkeras.pretrained.config import Config

FIELDS = (
    Field("vocab_size", "vocab_size", "size", 50257),
    Field("n_embd", "hidden_dim", "size", 768),
    Field("n_layer", "num_layers", "layers", 12),
    Field("n_head", "num_heads", "size", 12),
    Field("n_positions", "max_length", "size", 1024),
    Field("activation_function", "activation", "activation", "gelu_new"),
    Field("resid_pdrop", "dropout", "rate", 0.1),
    Field("attn_pdrop", "attention_dropout", "rate", 0.1),
    Field("layer_norm_epsilon", "epsilon", "rate", 1e-5),
)
FIXED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
# Masks of causality, which older files hold.
HARMLESS = (r"h\.\d+\.attn\.(masked_)?bias",)


def plan(config: Config, architecture: str, tensors: Collection[str], heads: bool) -> Plan:
    arguments = read_fields(config, FIELDS)
    width = arguments["hidden_dim"]
    arguments["feed_forward_dim"] = config.size("n_inner", 4 * width)
    config.heads("n_embd", width, "n_head", arguments["num_heads"])
    for name, value in FIXED.items():
        config.fixed(name, value)
    config.fixed("embd_pdrop", arguments["dropout"], "resid_pdrop")
    return Plan(lambda dtype: GPT(**arguments, dtype=dtype), HARMLESS)


def links(model: GPT) -> list[Link]:
    """Return the name map. Their Conv1D holds kernels (in, out), and of heads all three side by
    side."""
    all_links = [
        Link("wte.weight", (model.embedding.embeddings,), aliases=("lm_head.weight",)),
        Link("wpe.weight", (model.positions.embeddings,)),
    ]
    for number, block in enumerate(model.decoder.blocks):
        a, f, name = block.attention, block.feed_forward, f"h.{number}"
        kernels, biases = (
            (a.query_kernel, a.key_kernel, a.value_kernel),
            (a.query_bias, a.key_bias, a.value_bias),
        )
        all_links += [
            *lines.norm(f"{name}.ln_1", block.attention_norm),
            Link(f"{name}.attn.c_attn.weight", kernels, MATRIX),
            Link(f"{name}.attn.c_attn.bias", biases, VECTOR),
            Link(f"{name}.attn.c_proj.weight", (a.output_kernel,), MATRIX_OF_HEADS),
            Link(f"{name}.attn.c_proj.bias", (a.output_bias,)),
            *lines.norm(f"{name}.ln_2", block.feed_forward_norm),
            Link(f"{name}.mlp.c_fc.weight", (f.inner.kernel,), SAME),
            Link(f"{name}.mlp.c_fc.bias", (f.inner.bias,)),
            Link(f"{name}.mlp.c_proj.weight", (f.outer.kernel,), SAME),
            Link(f"{name}.mlp.c_proj.bias", (f.outer.bias,)),
        ]
    return [*all_links, *lines.norm("ln_f", model.decoder.final_norm)]


def describe(model: keras.Model) -> Description | None:
    if not isinstance(model, GPT) or isinstance(model, PermutedGPT):
        return None
    if not model.config["pre_norm"]:
        raise ValueError(
            "save_hugging_face: a GPT must have pre_norm, as GPT-2 has; received one without."
        )
    window = model.config["attention_window"]
    if window is not None:
        raise ValueError(
            "save_hugging_face: a GPT must have no attention_window, as GPT-2 has none; received "
            f"{window}."
        )
    if model.config["positions"] != "learned":
        raise ValueError(
            "save_hugging_face: a GPT must have learned positions, as GPT-2 has; received "
            f"{model.config['positions']!r}."
        )
    return Description(
        "GPT2LMHeadModel",
        {
            **write_fields(model.config, FIELDS),
            "n_inner": model.config["feed_forward_dim"],
            "embd_pdrop": model.config["dropout"],
            **FIXED,
        },
        {"bos_token_id": None, "eos_token_id": None},
    )


GPT2 = Family(
    "gpt2",
    ("GPT2Model", "GPT2LMHeadModel"),
    base="transformer.",
    outside=("lm_head.",),
    plan=plan,
    links=links,
    describe=describe,
)

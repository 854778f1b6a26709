"""Hugging Face's DistilBERT and its heads."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING

from seqkeras.pretrained import encoders
from seqkeras.pretrained.config import Field, read_fields, write_fields
from seqkeras.pretrained.family import Family

if TYPE_CHECKING:
    import keras

    from seqkeras.pretrained.config import Config
    from seqkeras.pretrained.family import Description, Plan

FIELDS = (
    Field("vocab_size", "vocab_size", "size", 30522),
    Field("dim", "hidden_dim", "size", 768),
    Field("n_layers", "num_layers", "layers", 6),
    Field("n_heads", "num_heads", "size", 12),
    Field("hidden_dim", "feed_forward_dim", "size", 3072),
    Field("max_position_embeddings", "max_length", "size", 512),
    Field("activation", "activation", "activation", "gelu"),
    Field("dropout", "dropout", "rate", 0.1),
    Field("attention_dropout", "attention_dropout", "rate", 0.1),
)
EPSILON = 1e-12
FORM = encoders.Form(
    architectures={
        "DistilBertModel": [],
        "DistilBertForMaskedLM": ["masked"],
        "DistilBertForSequenceClassification": ["classes"],
        "DistilBertForTokenClassification": ["tags"],
        "DistilBertForQuestionAnswering": ["span"],
        "DistilBertForMultipleChoice": ["choice"],
    },
    block="transformer.layer.{}.",
    parts={
        "attention": (
            "attention.q_lin",
            "attention.k_lin",
            "attention.v_lin",
            "attention.out_lin",
        ),
        "attention_norm": "sa_layer_norm",
        "inner": "ffn.lin1",
        "outer": "ffn.lin2",
        "feed_forward_norm": "output_layer_norm",
    },
    masked={
        "transform": "vocab_transform",
        "norm": "vocab_layer_norm",
        "bias": "vocab_projector",
        "decoder": "vocab_projector",
    },
    outputs={
        **dict.fromkeys(["classes", "numbers", "tags", "choice"], "classifier"),
        "span": "qa_outputs",
    },
    pooler="relu",
    poolers=dict.fromkeys(["classes", "numbers", "choice"], "pre_classifier"),
    outside=("vocab_", "pre_classifier.", "classifier.", "qa_outputs."),
    dropouts={
        **dict.fromkeys(["classes", "numbers", "choice"], ("seq_classif_dropout", 0.2)),
        "tags": (None, None),
        "span": ("qa_dropout", 0.1),
    },
)


def plan(config: Config, architecture: str, tensors: Collection[str], heads: bool) -> Plan:
    arguments = {**read_fields(config, FIELDS), "num_segments": 0, "epsilon": EPSILON}
    config.heads("dim", arguments["hidden_dim"], "n_heads", arguments["num_heads"])
    return encoders.plan(FORM, arguments, config, architecture, tensors, heads)


def describe(model: keras.Model) -> Description | None:
    parts = encoders.split(model)
    if parts is None or parts[0].config["num_segments"]:
        return None
    config, problems = parts[0].config, []
    for name, value in (("epsilon", EPSILON), ("first_position", 0)):
        if config[name] != value:
            problems.append(f"{name} must be {value}; received {config[name]}")
    return encoders.describe(FORM, model, write_fields(config, FIELDS), problems)


DISTILBERT = Family(
    "distilbert",
    tuple(FORM.architectures),
    base="distilbert.",
    outside=FORM.outside,
    plan=plan,
    links=functools.partial(encoders.links, FORM),
    describe=describe,
)

"""Hugging Face's BERT and its heads. Decoders and relative positions are left out."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from seqkeras.pretrained import encoders
from seqkeras.pretrained.config import Field, read_fields, write_fields
from seqkeras.pretrained.family import Family

if TYPE_CHECKING:
    import keras

    from seqkeras.pretrained.config import Config
    from seqkeras.pretrained.family import Description, Plan

FIELDS = (
    Field("vocab_size", "vocab_size", "size", 30522),
    Field("hidden_size", "hidden_dim", "size", 768),
    Field("num_hidden_layers", "num_layers", "layers", 12),
    Field("num_attention_heads", "num_heads", "size", 12),
    Field("intermediate_size", "feed_forward_dim", "size", 3072),
    Field("max_position_embeddings", "max_length", "size", 512),
    Field("type_vocab_size", "num_segments", "size", 2),
    Field("hidden_act", "activation", "activation", "gelu"),
    Field("hidden_dropout_prob", "dropout", "rate", 0.1),
    Field("attention_probs_dropout_prob", "attention_dropout", "rate", 0.1),
    Field("layer_norm_eps", "epsilon", "rate", 1e-12),
)
PARTS = {
    "attention": (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
    ),
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
FORM = encoders.Form(
    architectures={
        "BertModel": [],
        "BertForPreTraining": ["masked", "next"],
        "BertForMaskedLM": ["masked"],
        "BertForNextSentencePrediction": ["next"],
        "BertForSequenceClassification": ["classes"],
        "BertForTokenClassification": ["tags"],
        "BertForQuestionAnswering": ["span"],
        "BertForMultipleChoice": ["choice"],
    },
    block="encoder.layer.{}.",
    parts=PARTS,
    masked={
        "transform": "cls.predictions.transform.dense",
        "norm": "cls.predictions.transform.LayerNorm",
        "bias": "cls.predictions",
        "decoder": "cls.predictions.decoder",
    },
    outputs={
        "next": "cls.seq_relationship",
        "span": "qa_outputs",
        **dict.fromkeys(["classes", "numbers", "tags", "choice"], "classifier"),
    },
    pooler="tanh",
    poolers={"": "pooler.dense"},
    outside=("cls.", "classifier.", "qa_outputs."),
    dropouts=dict.fromkeys(["classes", "numbers", "tags", "choice"], ("classifier_dropout", None)),
)


def read_arguments(config: Config) -> dict[str, Any]:
    """Return arguments of `Bert`, but those in which RoBERTa differs."""
    arguments = read_fields(config, FIELDS)
    width, num_heads = arguments["hidden_dim"], arguments["num_heads"]
    config.heads("hidden_size", width, "num_attention_heads", num_heads)
    return arguments


def plan(config: Config, architecture: str, tensors: Collection[str], heads: bool) -> Plan:
    arguments = read_arguments(config)
    return encoders.plan(FORM, arguments, config, architecture, tensors, heads)


def describe(model: keras.Model) -> Description | None:
    parts = encoders.split(model)
    if parts is None or not parts[0].config["num_segments"] or parts[0].config["first_position"]:
        return None
    return encoders.describe(FORM, model, write_fields(parts[0].config, FIELDS), [])


BERT = Family(
    "bert",
    tuple(FORM.architectures),
    base="bert.",
    outside=FORM.outside,
    plan=plan,
    links=functools.partial(encoders.links, FORM),
    describe=describe,
    renamed=((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias")),
)

"""Backbones of KerasNLP (KerasHub): BERT, RoBERTa, DistilBERT, GPT-2. Their heads are left out.

A backbone says by its class and its config what it is: KerasNLP itself is not imported.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from keras import ops

from seqkeras.models import GPT, Bert
from seqkeras.pretrained.assignment import Link, Tensor, load_model
from seqkeras.pretrained.keras_links import dense, norm

if TYPE_CHECKING:
    import keras

PARTS = ("query", "key", "value", "output")  # theirs is attention_output


def load_keras_nlp(backbone: Any, dtype: str | keras.DTypePolicy | None = None) -> Bert | GPT:
    """Return our model with the weights of a backbone.

    Args:
        backbone: a `BertBackbone`, `RobertaBackbone`, `DistilBertBackbone` or `GPT2Backbone` of
            KerasNLP; its padding_mask is `lengths` of ours.
        dtype: dtype of the model; None for Keras's own.

    Returns:
        A `Bert`, whose "hidden" is the backbone's sequence output (and "pooled" a `BertBackbone`'s
        pooled output), or a `GPT`, whose logits come from the backbone's tied embeddings.

    Raises:
        ValueError: if it is another backbone; or, with a list of all such weights, if weights are
            missing, have another shape or have no use.

    Reference: https://github.com/keras-team/keras-hub (keras_hub/src/models)

    Example:
        >>> import keras_nlp, numpy as np
        >>> from seqkeras.pretrained import load_keras_nlp
        >>> backbone = keras_nlp.models.GPT2Backbone(
        ...     vocabulary_size=11, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12
        ... )
        >>> tuple(load_keras_nlp(backbone)({"token_ids": np.array([[2, 5, 3]])}).shape)
        (1, 3, 11)
    """
    name = type(backbone).__name__
    if name not in FORMS:
        raise ValueError(
            f"load_keras_nlp: backbone must be one of {', '.join(FORMS)}; received a {name}."
        )
    options, prefix = FORMS[name]
    make = functools.partial(_make, name, backbone.get_config(), options, dtype)
    tensors = {
        weight.path: Tensor(
            tuple(weight.shape),
            weight.dtype,
            functools.partial(ops.convert_to_numpy, weight.value),
        )
        for weight in backbone.weights
    }
    return load_model(make, functools.partial(_links, prefix=prefix), tensors, name)


# What a class does not say in its config; and what stands before the names of its embeddings.
FORMS = {
    "BertBackbone": ({"activation": "gelu_tanh"}, ""),
    "RobertaBackbone": ({"num_segments": 0, "pooler": None, "epsilon": 1e-5}, "embeddings/"),
    "DistilBertBackbone": ({"num_segments": 0, "pooler": None}, "token_and_position_embedding/"),
    "GPT2Backbone": ({}, ""),
}


def _make(name, config, options, dtype):
    sizes = {
        "vocab_size": config["vocabulary_size"],
        "hidden_dim": config["hidden_dim"],
        "num_layers": config["num_layers"],
        "num_heads": config["num_heads"],
        "feed_forward_dim": config["intermediate_dim"],
        "max_length": config["max_sequence_length"],
        "dropout": config["dropout"],
        "attention_dropout": config["dropout"],
    }
    if name == "GPT2Backbone":
        return GPT(**sizes, dtype=dtype)
    if "num_segments" in config:
        sizes["num_segments"] = config["num_segments"]
    return Bert(**sizes, **options, dtype=dtype)


def _links(model, prefix):
    """Return the name map of a `Bert` or of a `GPT`."""
    links = [
        Link(f"{prefix}token_embedding/embeddings", (model.embedding.embeddings,)),
        Link(f"{prefix}position_embedding/embeddings", (model.positions.embeddings,)),
    ]
    if isinstance(model, GPT):
        links += norm("layer_norm", model.decoder.final_norm)
        blocks, attention = model.decoder.blocks, "self_attention"
    else:
        links += norm("embeddings_layer_norm", model.embedding_norm)
        blocks, attention = model.encoder.blocks, "self_attention_layer"
        if model.segment_embedding is not None:
            links.append(
                Link("segment_embedding/embeddings", (model.segment_embedding.embeddings,))
            )
        if model.pooler is not None:
            links += dense("pooled_dense", model.pooler)
    for number, block in enumerate(blocks):
        links += _block(f"transformer_layer_{number}", attention, block)
    return links


def _block(name, attention, block):
    links = []
    for part in PARTS:
        theirs = "attention_output" if part == "output" else part
        links += [
            Link(
                f"{name}/{attention}/{theirs}/{kind}", (getattr(block.attention, f"{part}_{kind}"),)
            )
            for kind in ("kernel", "bias")
        ]
    return [
        *links,
        *norm(f"{name}/self_attention_layer_norm", block.attention_norm),
        *dense(f"{name}/feedforward_intermediate_dense", block.feed_forward.inner),
        *dense(f"{name}/feedforward_output_dense", block.feed_forward.outer),
        *norm(f"{name}/feedforward_layer_norm", block.feed_forward_norm),
    ]

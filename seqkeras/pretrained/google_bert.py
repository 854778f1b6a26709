"""Google's BERT checkpoints of TensorFlow 1: `bert_config.json` and `bert_model.ckpt.*`.

It leaves out heads of fine-tuned checkpoints, and writing checkpoints.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.models import Bert, MaskedLMHead, NextSentenceHead, WithHeads
from seqkeras.pretrained.assignment import (
    LINEAR,
    MATRIX,
    MATRIX_OF_HEADS,
    VECTOR,
    Link,
    Tensor,
    load_model,
)
from seqkeras.pretrained.config import Config, Field, read_fields
from seqkeras.pretrained.folders import read_json
from seqkeras.pretrained.keras_links import dense, norm

if TYPE_CHECKING:
    import keras

FIELDS = (
    Field("vocab_size", "vocab_size", "size", None),
    Field("hidden_size", "hidden_dim", "size", 768),
    Field("num_hidden_layers", "num_layers", "size", 12),
    Field("num_attention_heads", "num_heads", "size", 12),
    Field("intermediate_size", "feed_forward_dim", "size", 3072),
    Field("max_position_embeddings", "max_length", "size", 512),
    Field("type_vocab_size", "num_segments", "size", 2),
    Field("hidden_act", "activation", "activation", "gelu"),
    Field("hidden_dropout_prob", "dropout", "rate", 0.1),
    Field("attention_probs_dropout_prob", "attention_dropout", "rate", 0.1),
)
OPTIMIZER = (r".*/adam_[mv]", "global_step")
HEADS = ("cls/.*", "output_(weights|bias)")
ATTENTION = ("self/query", "self/key", "self/value", "output/dense")


def load_google_bert(
    folder: Path | str,
    checkpoint: str = "bert_model.ckpt",
    heads: bool = True,
    exact_gelu: bool = False,
    dtype: str | keras.DTypePolicy | None = None,
) -> Bert | WithHeads:
    """Return the model of a checkpoint of TensorFlow 1.

    Args:
        folder: a path; the folder holds `bert_config.json` and the checkpoint.
        checkpoint: name of the checkpoint, before .index and .data-...
        heads: True gives a `WithHeads` of "masked" (masked LM) and "next" (next sentence), with
            which Google trained it; False the encoder alone.
        exact_gelu: False is GELU's approximation by tanh, which Google's code computes where the
            config says "gelu"; True is the exact form, which Hugging Face computes.
        dtype: dtype of the model; None for Keras's own.

    Returns:
        A `Bert`, or `WithHeads`. The state of Adam in a checkpoint is not read.

    Raises:
        ValueError: if a file is missing, the config makes no model, or, listing all of them,
            variables are missing, have another shape or have no use.

    Reference: Devlin et al. 2019, https://arxiv.org/abs/1810.04805;
    https://github.com/google-research/bert (modeling.py, run_pretraining.py)

    Example:
        >>> import numpy as np
        >>> from seqkeras.pretrained import load_google_bert
        >>> model = load_google_bert("checkpoints/tiny-bert")
        >>> token_ids, segment_ids = np.array([[2, 5, 3]]), np.array([[0, 0, 1]])
        >>> outputs = model({"token_ids": token_ids, "segment_ids": segment_ids})
        >>> tuple(outputs["next"].shape), tuple(outputs["masked"].shape)[:2]
        ((1, 2), (1, 3))
    """
    folder = Path(folder)
    arguments = _arguments(folder, exact_gelu)
    tensors = read_tensors(folder / checkpoint)
    if not list(folder.glob(f"{checkpoint}.data-*")):
        raise ValueError(
            f"{folder}: must hold the values, {checkpoint}.data-...; found names and shapes alone."
        )
    make = functools.partial(make_model, arguments, heads, dtype)
    return load_model(make, links_of, tensors, folder / checkpoint, harmless(heads))


def make_model(
    arguments: Mapping[str, Any], heads: bool, dtype: str | keras.DTypePolicy | None = None
) -> Bert | WithHeads:
    """Return a `Bert` of these arguments, with its first heads or without; not built."""
    encoder = Bert(**arguments, dtype=dtype)
    if not heads:
        return encoder
    masked = MaskedLMHead(arguments["vocab_size"], activation=arguments["activation"], dtype=dtype)
    return WithHeads(
        encoder, {"masked": masked, "next": NextSentenceHead(dtype=dtype)}, dtype=dtype
    )


def harmless(heads: bool) -> tuple[str, ...]:
    """Return regular expressions of variables that need not be used."""
    return OPTIMIZER if heads else (*OPTIMIZER, *HEADS)


def read_tensors(checkpoint: Path | str) -> dict[str, Tensor]:
    """Return the variables of a checkpoint by name, from its index; a value is read when it is
    asked for.

    Args:
        checkpoint: its path, before .index.

    Raises:
        ValueError: if there is no such checkpoint.
    """
    import tensorflow as tf  # a checkpoint is TensorFlow's, on whatever backend the model is

    try:
        reader = tf.train.load_checkpoint(str(checkpoint))
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        raise ValueError(f"{checkpoint}: must be a checkpoint; received {error}.") from error
    dtypes = reader.get_variable_to_dtype_map()
    return {
        name: Tensor(tuple(shape), dtypes[name].name, functools.partial(reader.get_tensor, name))
        for name, shape in sorted(reader.get_variable_to_shape_map().items())
    }


def links_of(model: keras.Model) -> list[Link]:
    """Return the name map of a `Bert`, or of `WithHeads` on it."""
    encoder = model.encoder if isinstance(model, WithHeads) else model
    links = [
        Link("bert/embeddings/word_embeddings", (encoder.embedding.embeddings,)),
        Link("bert/embeddings/token_type_embeddings", (encoder.segment_embedding.embeddings,)),
        Link("bert/embeddings/position_embeddings", (encoder.positions.embeddings,)),
        *norm("bert/embeddings/LayerNorm", encoder.embedding_norm),
        *dense("bert/pooler/dense", encoder.pooler),
    ]
    for number, block in enumerate(encoder.encoder.blocks):
        links += _block(f"bert/encoder/layer_{number}", block)
    if encoder is not model:
        links += _head_links(model.heads["masked"], model.heads["next"].output_layer)
    return links


def _arguments(folder, exact_gelu):
    """Return arguments of `Bert`, from the config."""
    config = Config(read_json(folder / "bert_config.json"), folder / "bert_config.json")
    arguments = read_fields(config, FIELDS)
    sizes = arguments["hidden_dim"], arguments["num_heads"]
    config.heads("hidden_size", sizes[0], "num_attention_heads", sizes[1])
    config.check()
    if arguments["activation"] == "gelu" and not exact_gelu:
        arguments["activation"] = "gelu_tanh"
    return arguments


def _block(name, block):
    links = []
    for their_part, part in zip(ATTENTION, ("query", "key", "value", "output"), strict=True):
        kernel, bias = (getattr(block.attention, f"{part}_{kind}") for kind in ("kernel", "bias"))
        layout = MATRIX_OF_HEADS if part == "output" else MATRIX
        links += [
            Link(f"{name}/attention/{their_part}/kernel", (kernel,), layout),
            Link(f"{name}/attention/{their_part}/bias", (bias,), VECTOR),
        ]
    return [
        *links,
        *norm(f"{name}/attention/output/LayerNorm", block.attention_norm),
        *dense(f"{name}/intermediate/dense", block.feed_forward.inner),
        *dense(f"{name}/output/dense", block.feed_forward.outer),
        *norm(f"{name}/output/LayerNorm", block.feed_forward_norm),
    ]


def _head_links(masked, next_sentence):
    return [
        *dense("cls/predictions/transform/dense", masked.transform),
        *norm("cls/predictions/transform/LayerNorm", masked.norm),
        Link("cls/predictions/output_bias", (masked.bias,)),
        Link("cls/seq_relationship/output_weights", (next_sentence.kernel,), LINEAR),
        Link("cls/seq_relationship/output_bias", (next_sentence.bias,)),
    ]

"""What torch says of a whole encoder-decoder, and Hugging Face of DistilBERT.

Weights and their gradients as in `tests.vectors.transformer`.
"""

import numpy as np

from tests.vectors import in_both_dtypes
from tests.vectors.transformer import (
    _heads,
    _linear,
    _norm,
    _normal,
    _randomize,
    _tensor,
    _torch_layer,
    _with_gradients,
)


def make():
    return in_both_dtypes(CASES)


def transformer(
    dtype,
    pre_norm=False,
    activation="relu",
    batch=2,
    length=5,
    source_length=7,
    dim=6,
    layers=2,
    heads=3,
    inner=11,
):
    """`nn.Transformer`: causal, source and target under padding masks, which zero the outputs too.

    Behind post-norm blocks torch would normalise once more, as the paper does not, nor we.
    """
    import torch

    model = _torch_transformer(pre_norm, activation, dim, layers, heads, inner)
    _randomize(model, dtype, dim)
    random = np.random.default_rng(6)
    inputs = {
        "source": _tensor(_normal(random, (batch, source_length, dim)), dtype),
        "target": _tensor(_normal(random, (batch, length, dim)), dtype),
    }
    masks = {
        f"{name}_mask": np.arange(size) < random.integers(2, size, batch)[:, None]
        for name, size in (("source", source_length), ("target", length))
    }
    source_padding, target_padding = (torch.tensor(~each) for each in masks.values())
    outputs = model(
        inputs["source"],
        inputs["target"],
        tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
        src_key_padding_mask=source_padding,
        tgt_key_padding_mask=target_padding,
        memory_key_padding_mask=source_padding,
    )
    outputs = outputs * ~target_padding[..., None]

    def weights(take):
        found = []
        for stack in (model.encoder, model.decoder):
            for layer in stack.layers:
                found += _torch_layer(layer, heads, take)
            found += [] if stack.norm is None else _norm(stack.norm, take)
        return found

    return _with_gradients(inputs, outputs, weights, masks)


def _torch_transformer(pre_norm, activation, dim, layers, heads, inner):
    from torch import nn

    options = {"batch_first": True, "norm_first": pre_norm}
    encoder_layer = nn.TransformerEncoderLayer(dim, heads, inner, 0.0, activation, **options)
    decoder_layer = nn.TransformerDecoderLayer(dim, heads, inner, 0.0, activation, **options)
    encoder_norm, decoder_norm = [nn.LayerNorm(dim) if pre_norm else None for _ in range(2)]
    return nn.Transformer(
        dim,
        heads,
        custom_encoder=nn.TransformerEncoder(encoder_layer, layers, encoder_norm, False),
        custom_decoder=nn.TransformerDecoder(decoder_layer, layers, decoder_norm),
        batch_first=True,
    )


def distilbert(dtype, batch=2, length=5, vocab=17, dim=6, layers=2, heads=3, inner=11, places=13):
    """`DistilBertModel`: hidden states of the last layer, under a padding mask."""
    import torch
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(
        vocab_size=vocab,
        dim=dim,
        n_layers=layers,
        n_heads=heads,
        hidden_dim=inner,
        max_position_embeddings=places,
        dropout=0.0,
        attention_dropout=0.0,
        pad_token_id=None,
        attn_implementation="eager",
    )
    model = DistilBertModel(config)
    _randomize(model, dtype, dim)
    random = np.random.default_rng(7)
    token_ids = random.integers(0, vocab, (batch, length))
    lengths = random.integers(2, length + 1, batch)
    mask = torch.tensor(np.arange(length) < lengths[:, None]).long()
    outputs = {"hidden": model(torch.tensor(token_ids), attention_mask=mask).last_hidden_state}
    given = {"token_ids": token_ids, "lengths": lengths}
    return _with_gradients({}, outputs, lambda take: _distilbert(model, heads, take), given)


CASES = {
    "transformer": transformer,
    "transformer_pre_norm": lambda dtype: transformer(dtype, True, "gelu"),
    "distilbert": distilbert,
}


def _distilbert(model, heads, take):
    embeddings = model.embeddings
    arrays = [
        take(embeddings.word_embeddings.weight),
        take(embeddings.position_embeddings.weight),
        *_norm(embeddings.LayerNorm, take),
    ]
    for layer in model.transformer.layer:
        attention = layer.attention
        linears = attention.q_lin, attention.k_lin, attention.v_lin, attention.out_lin
        kernels, biases = zip(*(_linear(each, take) for each in linears), strict=True)
        arrays += [
            *_heads(kernels, biases, heads),
            *_norm(layer.sa_layer_norm, take),
            *_linear(layer.ffn.lin1, take),
            *_linear(layer.ffn.lin2, take),
            *_norm(layer.output_layer_norm, take),
        ]
    return arrays

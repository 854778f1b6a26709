"""What torch says of Transformer blocks, and Hugging Face of BERT, GPT-2 and GPT-1.

Weights and their gradients are those of our layers' `get_weights`, in their layout, end to end.
"""

import numpy as np

from tests.vectors import in_both_dtypes


def make():
    return in_both_dtypes(CASES)


def encoder_layer(
    dtype, pre_norm=False, activation="relu", batch=2, length=5, dim=6, heads=3, inner=7
):
    """`nn.TransformerEncoderLayer` under a padding mask."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(
        dim, heads, inner, 0.0, activation, batch_first=True, norm_first=pre_norm
    )
    _randomize(layer, dtype, dim)
    random = np.random.default_rng(1)
    sequence = _tensor(_normal(random, (batch, length, dim)), dtype)
    mask = np.arange(length) < random.integers(2, length + 1, batch)[:, None]
    outputs = layer(sequence, src_key_padding_mask=torch.tensor(~mask))
    inputs = {"sequence": sequence}
    return _with_gradients(
        inputs, outputs, lambda take: _torch_layer(layer, heads, take), {"mask": mask}
    )


def decoder_layer(
    dtype,
    pre_norm=False,
    activation="relu",
    batch=2,
    length=5,
    source_length=7,
    dim=6,
    heads=3,
    inner=11,
):
    """`nn.TransformerDecoderLayer`: causal, the source under a padding mask."""
    import torch

    layer = torch.nn.TransformerDecoderLayer(
        dim, heads, inner, 0.0, activation, batch_first=True, norm_first=pre_norm
    )
    _randomize(layer, dtype, dim)
    random = np.random.default_rng(2)
    inputs = {
        "sequence": _tensor(_normal(random, (batch, length, dim)), dtype),
        "encoded": _tensor(_normal(random, (batch, source_length, dim)), dtype),
    }
    mask = np.arange(source_length) < random.integers(2, source_length + 1, batch)[:, None]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    outputs = layer(
        inputs["sequence"],
        inputs["encoded"],
        tgt_mask=later,
        memory_key_padding_mask=torch.tensor(~mask),
    )
    return _with_gradients(
        inputs, outputs, lambda take: _torch_layer(layer, heads, take), {"encoded_mask": mask}
    )


def bert(dtype, batch=2, length=5, vocab=17, dim=6, layers=2, heads=3, inner=11, places=13):
    """`BertModel`: hidden states of the last layer and what is pooled, of padded pairs."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=vocab,
        hidden_size=dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=places,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=None,
        attn_implementation="eager",
    )
    model = BertModel(config)
    _randomize(model, dtype, dim)
    random = np.random.default_rng(3)
    token_ids = random.integers(0, vocab, (batch, length))
    segment_ids = random.integers(0, 2, (batch, length))
    lengths = random.integers(2, length + 1, batch)
    found = model(
        torch.tensor(token_ids),
        attention_mask=torch.tensor(np.arange(length) < lengths[:, None]).long(),
        token_type_ids=torch.tensor(segment_ids),
    )
    given = {"token_ids": token_ids, "segment_ids": segment_ids, "lengths": lengths}
    outputs = {"hidden": found.last_hidden_state, "pooled": found.pooler_output}
    return _with_gradients({}, outputs, lambda take: _bert(model, heads, take), given)


def gpt2(dtype, batch=2, length=5, vocab=17, dim=6, layers=2, heads=3, inner=11, places=13):
    """`GPT2LMHeadModel`: logits."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=vocab,
        n_positions=places,
        n_embd=dim,
        n_layer=layers,
        n_head=heads,
        n_inner=inner,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="eager",
    )
    return _language_model(GPT2LMHeadModel(config), dtype, batch, length, vocab, heads, _gpt2)


def gpt1(dtype, batch=2, length=5, vocab=17, dim=6, layers=2, heads=3, places=13):
    """`OpenAIGPTLMHeadModel`: logits."""
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    config = OpenAIGPTConfig(
        vocab_size=vocab,
        n_positions=places,
        n_embd=dim,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return _language_model(OpenAIGPTLMHeadModel(config), dtype, batch, length, vocab, heads, _gpt1)


CASES = {
    "encoder": encoder_layer,
    "encoder_pre_norm": lambda dtype: encoder_layer(dtype, True, "gelu"),
    "decoder": decoder_layer,
    "decoder_pre_norm": lambda dtype: decoder_layer(dtype, True, "gelu"),
    "bert": bert,
    "gpt2": gpt2,
    "gpt1": gpt1,
}


def _language_model(model, dtype, batch, length, vocab, heads, weights):
    import torch

    _randomize(model, dtype, model.config.n_embd)
    token_ids = np.random.default_rng(4).integers(0, vocab, (batch, length))
    logits = model(torch.tensor(token_ids)).logits
    transformer = model.transformer
    given = {"token_ids": token_ids}
    return _with_gradients({}, logits, lambda take: weights(transformer, heads, take), given)


def _normal(random, shape, scale=1.0):
    """Normal numbers of few bits, which both dtypes hold and which compress well."""
    return np.round(64 * scale * random.normal(size=tuple(shape))) / 64


def _tensor(array, dtype):
    import torch

    return torch.tensor(array.astype(dtype), requires_grad=True)


def _randomize(model, dtype, dim):
    """Normal numbers for every parameter, the same in every version of torch."""
    import torch

    random = np.random.default_rng(0)
    model.to(getattr(torch, dtype)).train()
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            parameter.copy_(torch.tensor(_normal(random, parameter.shape, dim**-0.5)))


def _with_gradients(inputs, outputs, weights, given):
    """Everything as NumPy: what was given, the outputs, and gradients of a weighted sum of them."""
    import torch

    outputs = outputs if isinstance(outputs, dict) else {"outputs": outputs}
    random = np.random.default_rng(5)
    factors = {
        name: _normal(random, each.shape).astype(str(each.dtype).split(".")[1])
        for name, each in outputs.items()
    }
    sum((torch.tensor(factors[name]) * each).sum() for name, each in outputs.items()).backward()
    return {
        **given,
        **{name: each.detach().numpy() for name, each in inputs.items()},
        **{f"gradient/{name}": each.grad.numpy() for name, each in inputs.items()},
        **{name: each.detach().numpy() for name, each in outputs.items()},
        **{f"factor/{name}": each for name, each in factors.items()},
        "weights": _flat(weights(lambda p: p.detach().numpy())),
        "gradients": _flat(weights(lambda p: p.grad.numpy())),
    }


def _flat(arrays):
    return np.concatenate([np.ravel(each) for each in arrays])


def _heads(kernels, biases, heads):
    """Kernels (in, out) and biases of query, key, value and output, split into heads."""
    dim = kernels[0].shape[0]
    arrays = []
    for kernel, bias in zip(kernels[:3], biases[:3], strict=True):
        arrays += [kernel.reshape(dim, heads, -1), bias.reshape(heads, -1)]
    return [*arrays, kernels[3].reshape(heads, -1, dim), biases[3]]


def _linear(layer, take):
    return [take(layer.weight).T, take(layer.bias)]


def _norm(layer, take):
    return [take(layer.weight), take(layer.bias)]


def _torch_attention(layer, heads, take):
    kernels = np.split(take(layer.in_proj_weight).T, 3, axis=1)
    biases = np.split(take(layer.in_proj_bias), 3)
    kernel, bias = _linear(layer.out_proj, take)
    return _heads([*kernels, kernel], [*biases, bias], heads)


def _torch_layer(layer, heads, take):
    crossed = hasattr(layer, "multihead_attn")
    arrays = [
        *_torch_attention(layer.self_attn, heads, take),
        *_norm(layer.norm1, take),
        *_linear(layer.linear1, take),
        *_linear(layer.linear2, take),
        *_norm(layer.norm3 if crossed else layer.norm2, take),
    ]
    if crossed:
        arrays += [*_torch_attention(layer.multihead_attn, heads, take), *_norm(layer.norm2, take)]
    return arrays


def _bert(model, heads, take):
    embeddings = model.embeddings
    arrays = [
        take(embeddings.word_embeddings.weight),
        take(embeddings.token_type_embeddings.weight),
        take(embeddings.position_embeddings.weight),
        *_norm(embeddings.LayerNorm, take),
    ]
    for layer in model.encoder.layer:
        attention = layer.attention
        linears = [
            *(getattr(attention.self, name) for name in ("query", "key", "value")),
            attention.output.dense,
        ]
        kernels, biases = zip(*(_linear(each, take) for each in linears), strict=True)
        arrays += [
            *_heads(kernels, biases, heads),
            *_norm(attention.output.LayerNorm, take),
            *_linear(layer.intermediate.dense, take),
            *_linear(layer.output.dense, take),
            *_norm(layer.output.LayerNorm, take),
        ]
    return [*arrays, *_linear(model.pooler.dense, take)]


def _gpt_block(block, heads, take):
    """Their Conv1D holds kernels (in, out)."""
    attention, inner = block.attn, block.mlp
    kernels = np.split(take(attention.c_attn.weight), 3, axis=1)
    biases = np.split(take(attention.c_attn.bias), 3)
    return [
        *_heads(
            [*kernels, take(attention.c_proj.weight)], [*biases, take(attention.c_proj.bias)], heads
        ),
        *_norm(block.ln_1, take),
        *_norm(inner.c_fc, take),
        *_norm(inner.c_proj, take),
        *_norm(block.ln_2, take),
    ]


def _gpt2(model, heads, take):
    arrays = [take(model.wte.weight), take(model.wpe.weight)]
    for block in model.h:
        arrays += _gpt_block(block, heads, take)
    return [*arrays, *_norm(model.ln_f, take)]


def _gpt1(model, heads, take):
    arrays = [take(model.tokens_embed.weight), take(model.positions_embed.weight)]
    for block in model.h:
        arrays += _gpt_block(block, heads, take)
    return arrays

"""Our Transformer and our GPT as models of CTranslate2, number by number."""

from pathlib import Path

import numpy as np

from benchmarks import harness


def write(model, folder, most_positions=512):
    """Write a post-norm `seqkeras.models.Transformer` with an output bias as CTranslate2 reads it.

    Tokens are called by their ids: "0", "1", ...; <bos> and <eos> are 2 and 3.
    """
    harness.import_rival("ctranslate2")
    from ctranslate2.specs import common_spec, transformer_spec

    options, sizes = model.block_options, model.sizes
    spec = transformer_spec.TransformerSpec.from_config(
        (model.num_layers, model.num_layers),
        options["num_heads"],
        pre_norm=False,
        activation=common_spec.Activation.RELU,
    )
    positions = np.asarray(model.positions(np.arange(most_positions)[None]))[0]
    spec.encoder.embeddings[0].weight = _numbers(model.source_embedding.weights[0])
    spec.decoder.embeddings.weight = _numbers(model.target_embedding.weights[0])
    spec.decoder.projection.weight = _numbers(model.output_embedding.weights[0])
    spec.decoder.projection.bias = _numbers(model.output_bias)
    for part in (spec.encoder, spec.decoder):
        part.position_encodings.encodings = positions
    for layer, block in zip(spec.encoder.layer, model.encoder.blocks, strict=True):
        _write_self_attention(layer.self_attention, block)
        _write_feed_forward(layer.ffn, block)
    for layer, block in zip(spec.decoder.layer, model.decoder.blocks, strict=True):
        _write_self_attention(layer.self_attention, block)
        _write_cross_attention(layer.attention, block)
        _write_feed_forward(layer.ffn, block)
    for side, register in (
        ("source", spec.register_source_vocabulary),
        ("target", spec.register_target_vocabulary),
    ):
        register(list(map(str, range(sizes[f"{side}_vocab_size"]))))
    spec.config.decoder_start_token = "2"
    _save(spec, folder)


def write_gpt(model, folder):
    """Write a pre-norm `seqkeras.models.GPT` with learned positions as CTranslate2 reads it.

    Tokens are called by their ids, as `write` calls them.
    """
    harness.import_rival("ctranslate2")
    from ctranslate2.specs import common_spec, transformer_spec

    config = model.config
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        config["num_layers"],
        config["num_heads"],
        pre_norm=True,
        activation=common_spec.Activation.GELUTanh,
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = _numbers(model.embedding.weights[0])
    decoder.position_encodings.encodings = _numbers(model.positions.embeddings)
    for layer, block in zip(decoder.layer, model.decoder.blocks, strict=True):
        _write_self_attention(layer.self_attention, block)
        _write_feed_forward(layer.ffn, block)
    _write_norm(decoder.layer_norm, model.decoder.final_norm)
    decoder.projection.weight = decoder.embeddings.weight
    spec.register_vocabulary(list(map(str, range(config["vocab_size"]))))
    _save(spec, folder)


def _save(spec, folder):
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "2", "3", "1"
    spec.validate()
    spec.optimize()
    Path(folder).mkdir(parents=True)
    spec.save(str(folder))


def _write_self_attention(spec, block):
    layer = block.attention
    projected = [_linear(layer, name) for name in ("query", "key", "value")]
    spec.linear[0].weight = np.concatenate([kernel for kernel, _ in projected])
    spec.linear[0].bias = np.concatenate([bias for _, bias in projected])
    _write_output(spec.linear[1], layer)
    _write_norm(spec.layer_norm, block.attention_norm)


def _write_cross_attention(spec, block):
    layer = block.cross_attention
    spec.linear[0].weight, spec.linear[0].bias = _linear(layer, "query")
    projected = [_linear(layer, name) for name in ("key", "value")]
    spec.linear[1].weight = np.concatenate([kernel for kernel, _ in projected])
    spec.linear[1].bias = np.concatenate([bias for _, bias in projected])
    _write_output(spec.linear[2], layer)
    _write_norm(spec.layer_norm, block.cross_norm)


def _write_output(spec, layer):
    kernel = _numbers(layer.output_kernel)  # (N, H, D)
    spec.weight = np.ascontiguousarray(kernel.reshape(-1, kernel.shape[-1]).T)
    spec.bias = _numbers(layer.output_bias)


def _write_feed_forward(spec, block):
    for linear, dense in (
        (spec.linear_0, block.feed_forward.inner),
        (spec.linear_1, block.feed_forward.outer),
    ):
        linear.weight = np.ascontiguousarray(_numbers(dense.kernel).T)
        linear.bias = _numbers(dense.bias)
    _write_norm(spec.layer_norm, block.feed_forward_norm)


def _write_norm(spec, norm):
    spec.gamma, spec.beta = _numbers(norm.gamma), _numbers(norm.beta)


def _linear(layer, name):
    """Return the kernel (N H, D) and bias (N H,) of a projection."""
    kernel = _numbers(getattr(layer, f"{name}_kernel"))  # (D, N, H)
    bias = _numbers(getattr(layer, f"{name}_bias"))
    return np.ascontiguousarray(kernel.reshape(len(kernel), -1).T), bias.reshape(-1)


def _numbers(variable):
    return np.ascontiguousarray(np.asarray(variable, np.float32))

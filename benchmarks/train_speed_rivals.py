"""The Transformer of a translation recipe, of other libraries' parts: `benchmarks.train_speed`."""

from benchmarks import harness, training_steps, whole_steps
from benchmarks.translation_step import recipe_step

MOST_POSITIONS = 512


def keras_nlp_step(options, vocab_size):
    """Return a function: (inputs, targets) -> loss of a training step of keras_nlp's encoder and
    decoder blocks.

    Args:
        options: `TranslationOptions`; its loss, its learning rate and its clipping are ours.
        vocab_size: of both languages together.
    """
    import keras
    from keras import ops

    layers = training_steps.import_keras_nlp().layers
    dim = options.hidden_dim
    given = (options.feed_forward_dim, options.num_heads)
    embedding = layers.ReversibleEmbedding(vocab_size, dim, tie_weights=True)
    positions, dropout = layers.SinePositionEncoding(), keras.layers.Dropout(options.dropout)

    def embedded(token_ids):
        vectors = embedding(token_ids) * dim**0.5
        return dropout(vectors + positions(vectors))

    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    target_ids = keras.Input((None,), dtype="int64", name="target_ids")
    lengths = keras.Input((), dtype="int64", name="lengths")
    real = ops.cumsum(ops.ones_like(token_ids), axis=1) <= lengths[:, None]
    encoded, decoded = embedded(token_ids), embedded(target_ids)
    for _ in range(options.num_layers):
        block = layers.TransformerEncoder(*given, dropout=options.dropout)
        encoded = block(encoded, padding_mask=real)
    for _ in range(options.num_layers):
        block = layers.TransformerDecoder(*given, dropout=options.dropout)
        decoded = block(decoded, encoded, encoder_padding_mask=real)
    inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
    return recipe_step(keras.Model(inputs, embedding(decoded, reverse=True)), options)


def torch_step(options, vocab_size):
    """Return the same of PyTorch's `nn.Transformer`, `CrossEntropyLoss` and Adam.

    Its dropout lies where the recipe's does: not on attention weights and activations.

    Raises:
        ImportError: if PyTorch is not installed.
    """
    torch = harness.import_rival("torch")
    model = _torch_model(torch, options, vocab_size)
    loss = torch.nn.CrossEntropyLoss(ignore_index=0, label_smoothing=options.label_smoothing)
    learning_rate = options.learning_rate / options.warmup_steps
    return whole_steps.torch_step(torch, model, loss, learning_rate, options.clip_norm)


def _torch_model(torch, options, vocab_size):
    dim = options.hidden_dim

    class Translator(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocab_size, dim)
            torch.nn.init.normal_(self.embedding.weight, std=dim**-0.5)
            self.dropout = torch.nn.Dropout(options.dropout)
            self.blocks = torch.nn.Transformer(
                dim,
                options.num_heads,
                options.num_layers,
                options.num_layers,
                options.feed_forward_dim,
                options.dropout,
                batch_first=True,
            )
            for block in [*self.blocks.encoder.layers, *self.blocks.decoder.layers]:
                block.dropout.p = block.self_attn.dropout = 0.0
            for block in self.blocks.decoder.layers:
                block.multihead_attn.dropout = 0.0
            self.register_buffer("positions", _sinusoids(torch, dim))

        def embedded(self, token_ids):
            vectors = self.embedding(token_ids) * dim**0.5
            return self.dropout(vectors + self.positions[: token_ids.shape[1]])

        def forward(self, token_ids, lengths, target_ids):
            padding = torch.arange(token_ids.shape[1]) >= lengths[:, None]
            length = target_ids.shape[1]
            later = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
            decoded = self.blocks(
                self.embedded(token_ids),
                self.embedded(target_ids),
                tgt_mask=later,
                src_key_padding_mask=padding,
                memory_key_padding_mask=padding,
                tgt_is_causal=True,
            )
            return decoded @ self.embedding.weight.T

    return Translator()


def _sinusoids(torch, dim):
    angles = torch.arange(MOST_POSITIONS)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

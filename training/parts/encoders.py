"""Encoders of the tasks of texts and of frames: a vector for each token, or each frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from seqkeras.embeddings import WordCharacters
from seqkeras.models.positions import (
    add_positions,
    bias_of_stack,
    position_vectors,
    relative_clip,
)
from seqkeras.recurrent import GRU, LSTM, QRNN, Bidirectional, SimpleRNN
from seqkeras.tokenizers import PAD, CharacterTable, spelled_pieces
from seqkeras.training.options.positions import POSITION_KINDS
from seqkeras.training.parts.features import features_of
from seqkeras.transformer import Encoder, EncoderBlock

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.tensors import Tensor
    from seqkeras.training.options.encoders import EncoderOptions

CHARACTER_DIM, CHARACTER_WIDTH = 30, 3  # as Ma and Hovy 2016 have them
RECURRENT = {"gru": GRU, "lstm": LSTM, "qrnn": QRNN, "simple_rnn": SimpleRNN}


def encoded(
    options: EncoderOptions, tokenizer: Tokenizer, limit: int, takes_pairs: bool = False
) -> tuple[Any, ...]:
    """Return symbolic inputs and hidden states of a functional model.

        x(t) = E w(t), or E w(t) + S s(t) of pairs; beside it the characters' vector of
               --character-filters and the features of --features, if they are asked for
        recurrent:    h = [forward cell; backward cell] over x, layer by layer
        convolution:  h(t) = relu(W [x(t - k/2); ...; x(t + k/2)]), layer by layer
        transformer:  encoder blocks over x + positions; over W x + positions, if x is put
                      together; or over x, where the blocks know distances

    and with --causal

        recurrent:    h = forward cell over x, layer by layer
        convolution:  h(t) = relu(W [x(t - k + 1); ...; x(t)]), layer by layer
        transformer:  blocks over x + gelu(W [x(t - k + 1); ...; x(t)]), which tells the order;
                      or over x, where the blocks know distances

    Args:
        options: an `EncoderOptions`.
        tokenizer: tokenizer of the texts.
        limit: the most tokens of a text, and so the number of learned positions.
        takes_pairs: whether there are segments s, too.

    Returns:
        (name -> `keras.Input`, hidden states (B, T, H), mask (B, T), True for real tokens).

    Reference: Kim 2014, https://arxiv.org/abs/1408.5882 (convolutions); Vaswani et al. 2017,
    https://arxiv.org/abs/1706.03762 (Transformer); Ma and Hovy 2016,
    https://arxiv.org/abs/1603.01354 (characters); Baevski et al. 2020, section 2,
    https://arxiv.org/abs/2006.11477 (convolution in place of positions)
    """
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    inputs = {"token_ids": token_ids}
    real = ops.not_equal(token_ids, PAD)  # (B, T)
    hidden = keras.layers.Embedding(len(tokenizer), options.embedding_dim)(token_ids)  # (B, T, D)
    if takes_pairs:
        inputs["segment_ids"] = keras.Input((None,), dtype="int64", name="segment_ids")
        segments = keras.layers.Embedding(2, options.embedding_dim)(inputs["segment_ids"])
        hidden = keras.layers.Add()([hidden, segments])
    beside = []
    if options.character_filters:
        beside.append(_characters(options, tokenizer)(token_ids))
    if options.features is not None:
        beside.append(features_of(options, tokenizer)(**inputs))
    if beside:
        hidden = keras.layers.Concatenate()([hidden, *beside])
        if options.encoder == "transformer":
            hidden = keras.layers.Dense(options.embedding_dim)(hidden)
    return inputs, _layers(options, hidden, real, limit), real


def _characters(options, tokenizer):
    """Return the `WordCharacters` of the characters that the vocabulary has."""
    table = CharacterTable.learn(map(tokenizer.token_of, range(len(tokenizer))))
    pieces, goes_on = spelled_pieces(tokenizer, table)
    filters = [options.character_filters]
    return WordCharacters(len(table), CHARACTER_DIM, [CHARACTER_WIDTH], filters, pieces, goes_on)


def encoded_frames(
    options: EncoderOptions, scaling: Callable[[Tensor], Tensor], num_features: int, limit: int
) -> tuple[Any, ...]:
    """Return symbolic inputs and hidden states of a model of frames z, which are numbers.

        x(t) = W scaling(z(t)) + b

    Args:
        options: an `EncoderOptions`.
        scaling: a function of the frames.
        num_features: how many numbers a frame has.
        limit: the most frames of a recording.

    Returns:
        See `encoded`, with T frames.
    """
    frames = keras.Input((None, num_features), name="frames")
    lengths = keras.Input((), dtype="int64", name="lengths")
    places = ops.cumsum(ops.ones_like(frames[..., 0], dtype="int32"), axis=1)  # from 1, (B, T)
    real = places <= ops.cast(lengths, "int32")[:, None]
    hidden = keras.layers.Dense(options.embedding_dim)(scaling(frames))  # (B, T, D)
    return {"frames": frames, "lengths": lengths}, _layers(options, hidden, real, limit), real


def _layers(options, hidden, real, limit):
    if options.encoder == "transformer":
        return _transformer(options, hidden, real, limit)
    layers = _convolutions if options.encoder == "convolution" else _recurrent
    return layers(options, hidden, real)


def _recurrent(options, hidden, real):
    for _ in range(options.num_layers):
        hidden = keras.layers.Dropout(options.dropout)(hidden)
        layer = RECURRENT[options.encoder](options.units, return_sequences=True)
        # Padding stands behind all frames, so a layer that reads forwards needs no mask.
        hidden = layer(hidden) if options.causal else Bidirectional(layer)(hidden, mask=real)
    return hidden  # (B, T, U), or (B, T, 2U)


def _convolutions(options, hidden, real):
    real = ops.cast(real, hidden.dtype)[..., None]
    for _ in range(options.num_layers):
        hidden = keras.layers.Dropout(options.dropout)(hidden)
        if not options.causal:
            hidden = hidden * real
        padding = "causal" if options.causal else "same"
        hidden = keras.layers.Conv1D(
            options.units, options.width, padding=padding, activation="relu"
        )(hidden)
    return hidden


def _transformer(options, hidden, real, limit):
    dim = options.embedding_dim
    if options.causal and options.position_kind is None:
        convolution = keras.layers.Conv1D(dim, options.width, padding="causal", activation="gelu")
        hidden = hidden + convolution(hidden)
    else:
        hidden = with_positions(options.position_kind, hidden * dim**0.5, limit)
    hidden = keras.layers.Dropout(options.dropout)(hidden)
    encoder = encoder_of(
        options.position_kind,
        options.num_layers,
        dim,
        options.num_heads,
        4 * dim,
        dropout=options.dropout,
        pre_norm=True,
        attention_window=options.attention_window,
        causal=options.causal,
    )
    return encoder(hidden, attention_mask=None if options.causal else real[:, None])


def with_positions(position_kind: str | None, hidden: Tensor, limit: int) -> Tensor:
    """Return (B, T, D), with the vectors of positions where the kind has vectors.

    Args:
        position_kind: an option of --position-kind; None for sinusoids.
        hidden: (B, T, D).
        limit: the number of learned positions.
    """
    kind = POSITION_KINDS[position_kind or "sinusoid"]
    places = ops.cumsum(ops.ones_like(hidden[..., 0], dtype="int32"), axis=1) - 1  # (B, T)
    return add_positions(position_vectors(kind, hidden.shape[-1], None, limit), hidden, places)


def encoder_of(
    position_kind: str | None, num_layers: int, *sizes: int, causal: bool, **options: Any
) -> Encoder:
    """Return an `Encoder`, which knows distances if the kind of positions is of distances.

    Args:
        sizes, options: those of `EncoderBlock`.
    """
    kind = POSITION_KINDS[position_kind or "sinusoid"]
    block = EncoderBlock(*sizes, causal=causal, relative_clip=relative_clip(kind), **options)
    return Encoder(block, num_layers, bias_of_stack(kind, block.num_heads, not causal, None))

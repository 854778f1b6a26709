"""The parts of a recurrent encoder-decoder, made from sizes and options."""

from collections.abc import Sequence
from typing import Any

import keras

from seqkeras.attention import (
    AdditiveScore,
    Attention,
    ConcatScore,
    DotScore,
    GeneralScore,
    HardAttention,
    LocalAttention,
    ScaledDotScore,
)
from seqkeras.models.bridges import Bridge, OwnState
from seqkeras.models.recurrent_stack import RecurrentStack

__all__ = ["parts_from_sizes"]

SCORES = {
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "dot": DotScore,
    "general": GeneralScore,
    "hard": AdditiveScore,  # as in the paper
    "local_monotonic": GeneralScore,  # as in the best local models of the paper
    "local_predictive": GeneralScore,
    "scaled_dot": ScaledDotScore,
}
WINDOW = 10  # the paper's D for local attention
FIRST_STATES = ("bridge", "zeros", "learned")


def parts_from_sizes(
    decoder: type[keras.layers.Layer],
    source_vocab_size: int | None,
    target_vocab_size: int,
    embedding_dim: int,
    units: int,
    decoder_units: int | None = None,
    cell: str | keras.layers.Layer = "gru",
    decoder_cell: str | keras.layers.Layer | None = None,
    encoder_layers: int = 1,
    decoder_layers: int = 1,
    bidirectional: bool = True,
    dropout: float = 0.0,
    context: str = "last",
    first_state: str = "bridge",
    bridge_layers: int = 1,
    cell_states: bool = False,
    reads_output: bool = True,
    source_features: int | None = None,
    reverse_source: bool = False,
    source_scaling: Sequence[Sequence[float]] | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    name: str | None = None,
    **of_decoder,
) -> dict[str, Any]:
    """Return the arguments of `RNNSeq2Seq`: its parts, made from sizes.

    Args:
        decoder: the class of the decoder.
        source_vocab_size, target_vocab_size: numbers of token ids; the first is None where the
            source is frames.
        embedding_dim: size of the embeddings of both sides.
        units: size of the encoder's state in each direction, and of the hidden layer of scores.
        decoder_units: size of the decoder's state; None for the encoder's, both directions.
        cell: cell of both sides: "gru", "lstm", "simple_rnn", or a cell of whatever size, ours,
            Keras's or your own, as a pattern of each layer's (`seqkeras.models.rnn_cells`); also
            "qrnn" or a `QRNN`, for the encoder, with another cell as decoder_cell.
        decoder_cell: cell of the decoder, in the form of `cell`, but no QRNN; None for the
            encoder's.
        encoder_layers, decoder_layers: how many.
        bidirectional: whether the encoder reads both ways.
        dropout: dropout rate of the embeddings, between the layers of the encoder, and before the
            logits.
        context: "last", "map" or "combination"; see `RNNSeq2Seq`.
        first_state: "bridge", from the encoder's (`Bridge`); "zeros" or "learned", the decoder's
            own (`OwnState`).
        bridge_layers: how many layers map c to each of the decoder's first states.
        cell_states: whether also those after the first of each cell, as the cell state of an LSTM.
        reads_output: False feeds the decoder no y(t-1).
        source_features: of a source that is frames, how many numbers each has.
        reverse_source: whether the encoder reads the source from its end.
        source_scaling: the mean and the deviation of each number of frames, or None.
        dtype: dtype of all parts.
        name: name of the model.
        of_decoder: the other arguments of the decoder, as never_generated, teacher_forcing,
            readout, reads_context, input_feeding, entropy_weight; attention is a layer, or
            "additive", "concat", "dot", "general", "scaled_dot", "local_monotonic",
            "local_predictive" or "hard".

    Raises:
        ValueError: if a part refuses its arguments, or a name is unknown.

    Example:
        >>> from seqkeras.models import ClassicalDecoder, RNNSeq2Seq
        >>> from seqkeras.models.rnn_parts import parts_from_sizes
        >>> parts = parts_from_sizes(ClassicalDecoder, 17, 19, embedding_dim=8, units=6)
        >>> model = RNNSeq2Seq(**parts)
        >>> model.decoder.units, parts["context"]  # both directions of the encoder, side by side
        (12, 'last')
    """
    policy = {} if dtype is None else {"dtype": dtype}
    if "attention" in of_decoder:
        of_decoder["attention"] = _attention(of_decoder["attention"], units, policy)
    if first_state not in FIRST_STATES:
        raise ValueError(
            f"RNNSeq2Seq: first_state must be one of {FIRST_STATES}; received {first_state!r}."
        )
    embedding = None
    if source_vocab_size is not None:
        embedding = keras.layers.Embedding(source_vocab_size, embedding_dim, **policy)
    encoder = RecurrentStack(cell, units, encoder_layers, dropout, bidirectional, **policy)
    made = decoder(
        target_vocab_size,
        embedding_dim if reads_output else None,
        encoder.output_dim if decoder_units is None else decoder_units,
        cell=cell if decoder_cell is None else decoder_cell,
        num_layers=decoder_layers,
        dropout=dropout,
        **of_decoder,
        **policy,
    )
    if first_state == "bridge":
        bridge = Bridge(made.units, bridge_layers, cell_states, **policy)
    else:
        bridge = OwnState(made.units, first_state == "learned", cell_states, **policy)
    return {
        "encoder": encoder,
        "decoder": made,
        "bridge": bridge,
        "context": context,
        "source_embedding": embedding,
        "source_features": source_features,
        "reverse_source": reverse_source,
        "source_scaling": source_scaling,
        "name": name,
        **policy,
    }


def _attention(attention, units, policy):
    """Return the layer of a name; `units` is for scores that have a hidden layer. A layer as it
    is."""
    if not isinstance(attention, str):
        return attention
    if attention not in SCORES:
        raise ValueError(
            f"RNNSeq2Seq: attention must be a layer or one of {sorted(SCORES)}; received "
            f"{attention!r}."
        )
    score_class = SCORES[attention]
    sizes = [units] if score_class in (AdditiveScore, ConcatScore) else []
    score = score_class(*sizes, **policy)
    if attention.startswith("local_"):
        kind = attention.removeprefix("local_")
        return LocalAttention(score, WINDOW, kind=kind, **policy)
    return (HardAttention if attention == "hard" else Attention)(score, **policy)

"""Encoder-decoders: `encode` a source, then `step` through the target."""

import keras
import numpy as np

from seqkeras.attention import (
    DotScore,
    GeneralScore,
    HardAttention,
    LocalAttention,
    MultiHeadAttention,
    ScaledDotScore,
)
from seqkeras.models import BahdanauDecoder, ClassicalDecoder, LuongDecoder, RNNSeq2Seq
from seqkeras.models.rnn_parts import parts_from_sizes
from seqkeras.recurrent import QRNN
from seqkeras.schedules import LinearDecay
from tests.catalogue.case import B, Case, S, T
from tests.catalogue.cells import MinimalGatedCell

SIZES = {
    "source_vocab_size": 17,
    "target_vocab_size": 19,
    "embedding_dim": 7,
    "units": 11,
    "decoder_units": 13,
}
MADE = ("cell", "attention", "teacher_forcing")  # objects, a new one for each model


def translation_inputs():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1, 17, (B, S)),
        "lengths": np.array([5, 3]),
        "target_ids": random.integers(1, 19, (B, T)),
    }


def model_of(decoder=BahdanauDecoder, **options):
    """An `RNNSeq2Seq` of `SIZES`.

    Args:
        decoder: the class of its decoder, or the name of a preset.
        options: of `parts_from_sizes`; sizes among them.
    """
    options = SIZES | options
    if isinstance(decoder, str):
        return getattr(RNNSeq2Seq, decoder)(**options)
    attention = {} if decoder is ClassicalDecoder else {"attention": "additive"}
    return RNNSeq2Seq(**parts_from_sizes(decoder, **attention | options))


def seq2seq_case(name, fed=True, **arguments):
    """A case of `RNNSeq2Seq`; `fed` if its decoder reads the target."""

    def make():
        options = {"dropout": 0.3, "never_generated": [0, 5], **arguments}
        made = {
            key: value() if key in MADE and callable(value) else value
            for key, value in options.items()
        }
        return model_of(**made)

    lengths = {"token_ids": 1, "target_ids": 1}
    past = ("target_ids",) if fed else ()
    return Case(f"RNNSeq2Seq({name})", make, translation_inputs, lengths, past=past)


BAHDANAU = [seq2seq_case("gru", cell="gru"), seq2seq_case("lstm", cell="lstm")]
CLASSICAL = [
    seq2seq_case(
        "initial_state", decoder="sutskever", encoder_layers=3, decoder_layers=2, units=13
    ),
    seq2seq_case("reversed", decoder="sutskever", units=13, reverse_source=True),
    seq2seq_case(
        "initial_state alone",
        fed=False,
        decoder=ClassicalDecoder,
        reads_output=False,
        cell="simple_rnn",
        decoder_layers=2,
    ),
    seq2seq_case(
        "context",
        fed=False,
        decoder=ClassicalDecoder,
        reads_context=True,
        reads_output=False,
        context="map",
        bridge_layers=2,
    ),
    seq2seq_case(
        "context_and_output",
        decoder=ClassicalDecoder,
        reads_context=True,
        context="combination",
        cell="lstm",
        cell_states=True,
    ),
    seq2seq_case("classical_first_state", fed=False, decoder="classical_first_state", units=13),
    seq2seq_case(
        "classical_context",
        fed=False,
        decoder="classical_context",
        cell="lstm",
        first_state="learned",
        cell_states=True,
        decoder_layers=2,
    ),
    seq2seq_case("classical_context_and_output", decoder="classical_context_and_output"),
]
LUONG = [
    seq2seq_case(
        "LocalAttention(GeneralScore)",
        attention=lambda: LocalAttention(GeneralScore(), 1),
        decoder=LuongDecoder,
        teacher_forcing=lambda: LinearDecay(0.7, 0.1),
        teacher_forcing_per="batch",
    ),
    seq2seq_case(
        "LocalAttention(DotScore), fed",
        attention=lambda: LocalAttention(DotScore(), 2, "predictive"),
        decoder=LuongDecoder,
        input_feeding=True,
        bridge_layers=0,
        units=7,
        decoder_units=14,
    ),
]
HEADS = [
    seq2seq_case("MultiHeadAttention, before", attention=lambda: MultiHeadAttention(3, 2)),
    seq2seq_case(
        "MultiHeadAttention, after",
        attention=lambda: MultiHeadAttention(2, 5, output_dim=17, use_bias=False),
        decoder=LuongDecoder,
        input_feeding=True,
        cell="lstm",
    ),
]
# Scores without weights: at inference nothing teaches a hard attention where to look.
HARD = [
    seq2seq_case(
        "HardAttention, before",
        attention=lambda: HardAttention(DotScore(), seed=3),
        entropy_weight=0.1,
        decoder_units=22,
        decoder_layers=3,
    ),
    seq2seq_case(
        "HardAttention, after",
        attention=lambda: HardAttention(ScaledDotScore(), seed=3),
        decoder=LuongDecoder,
        decoder_units=22,
    ),
    seq2seq_case(
        "HardAttention, fed",
        attention=lambda: HardAttention(ScaledDotScore(), seed=3),
        decoder=LuongDecoder,
        input_feeding=True,
        cell="lstm",
        decoder_units=22,
    ),
]
ANY_CELL = [
    seq2seq_case(
        "Keras's LSTMCell",
        cell=lambda: keras.layers.LSTMCell(3, unit_forget_bias=False),
        cell_states=True,
        encoder_layers=2,
        decoder_layers=2,
    ),
    seq2seq_case("a cell of the user's", cell=lambda: MinimalGatedCell(3), bidirectional=False),
    seq2seq_case(
        "a cell of the user's, after",
        cell=lambda: MinimalGatedCell(3),
        attention="general",
        decoder=LuongDecoder,
    ),
    seq2seq_case(
        "QRNN, decoder lstm",
        cell=lambda: QRNN(3, 3, "ifo"),
        decoder_cell="lstm",
        cell_states=True,
        encoder_layers=3,
        decoder_layers=2,
    ),
    seq2seq_case(
        "lstm, decoder gru",
        cell="lstm",
        decoder_cell="gru",
        cell_states=True,
        decoder=ClassicalDecoder,
        reads_context=True,
        context="map",
    ),
]
CASES = [*BAHDANAU, *CLASSICAL, *LUONG, *HEADS, *HARD, *ANY_CELL]
ATTENDING = [*BAHDANAU, *LUONG, *HEADS, *HARD, *ANY_CELL[:-1]]

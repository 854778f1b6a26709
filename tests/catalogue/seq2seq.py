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
from seqkeras.models import RNNSeq2Seq
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


def translation_inputs():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1, 17, (B, S)),
        "lengths": np.array([5, 3]),
        "target_ids": random.integers(1, 19, (B, T)),
    }


def seq2seq_case(name, fed=True, **arguments):
    """A case of `RNNSeq2Seq`; `fed` if its decoder reads the target."""

    def make():
        options = {"dropout": 0.3, "never_generated": [0, 5], **SIZES, **arguments}
        return RNNSeq2Seq(
            **{key: each() if callable(each) else each for key, each in options.items()}
        )

    lengths = {"token_ids": 1, "target_ids": 1}
    past = ("target_ids",) if fed else ()
    return Case(f"RNNSeq2Seq({name})", make, translation_inputs, lengths, past=past)


BAHDANAU = [seq2seq_case("gru", cell="gru"), seq2seq_case("lstm", cell="lstm")]
CLASSICAL = [
    seq2seq_case(
        "initial_state",
        attention=None,
        wiring="initial_state",
        cell="lstm",
        encoder_layers=3,
        decoder_layers=2,
        bidirectional=False,
        units=13,
        bridge_layers=0,
        initial_cell="bridge",
        readout=False,
    ),
    seq2seq_case(
        "initial_state alone",
        fed=False,
        attention=None,
        wiring="initial_state",
        feed_output=False,
        cell="simple_rnn",
        decoder_layers=2,
    ),
    seq2seq_case(
        "context", fed=False, attention=None, wiring="context", context="map", bridge_layers=2
    ),
    seq2seq_case(
        "context_and_output",
        attention=None,
        context="combination",
        cell="lstm",
        initial_cell="bridge",
    ),
]
LUONG = [
    seq2seq_case(
        "LocalAttention(GeneralScore)",
        attention=lambda: LocalAttention(GeneralScore(), 1),
        attention_place="after",
        wiring="initial_state",
        teacher_forcing=lambda: LinearDecay(0.7, 0.1),
        teacher_forcing_per="batch",
    ),
    seq2seq_case(
        "LocalAttention(DotScore), fed",
        attention=lambda: LocalAttention(DotScore(), 2, "predictive"),
        attention_place="after",
        wiring="initial_state",
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
        attention_place="after",
        wiring="initial_state",
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
        attention_place="after",
        wiring="initial_state",
        decoder_units=22,
    ),
    seq2seq_case(
        "HardAttention, fed",
        attention=lambda: HardAttention(ScaledDotScore(), seed=3),
        attention_place="after",
        wiring="initial_state",
        input_feeding=True,
        cell="lstm",
        decoder_units=22,
    ),
]
ANY_CELL = [
    seq2seq_case(
        "Keras's LSTMCell",
        cell=lambda: keras.layers.LSTMCell(3, unit_forget_bias=False),
        initial_cell="bridge",
        encoder_layers=2,
        decoder_layers=2,
    ),
    seq2seq_case("a cell of the user's", cell=lambda: MinimalGatedCell(3), bidirectional=False),
    seq2seq_case(
        "a cell of the user's, after",
        cell=lambda: MinimalGatedCell(3),
        attention="general",
        attention_place="after",
        wiring="initial_state",
    ),
    seq2seq_case(
        "QRNN, decoder lstm",
        cell=lambda: QRNN(3, 3, "ifo"),
        decoder_cell="lstm",
        initial_cell="bridge",
        encoder_layers=3,
        decoder_layers=2,
    ),
    seq2seq_case(
        "lstm, decoder gru",
        cell="lstm",
        decoder_cell="gru",
        initial_cell="bridge",
        attention=None,
        context="map",
    ),
]
CASES = [*BAHDANAU, *CLASSICAL, *LUONG, *HEADS, *HARD, *ANY_CELL]

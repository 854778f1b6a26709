"""Language models, BiDAF and the forecaster."""

import keras
import numpy as np

from seqkeras.models import (
    BandWidths,
    BiDAF,
    BiLM,
    BiLMFeatures,
    Forecaster,
    LayerMix,
    LinearForecast,
    LinearNgrams,
    RNNLanguageModel,
)
from seqkeras.recurrent import QRNN
from tests.arrays import floats
from tests.catalogue.case import B, Case, D, S, T
from tests.catalogue.cells import MinimalGatedCell
from tests.catalogue.embeddings import GOES_ON, PIECES, SPELLED, characters

LENGTHS = np.array([5, 3])


def ids(vocab_size, length, seed=0):
    return np.random.default_rng([seed, length]).integers(1, vocab_size, (B, length))


def language_case(cell, make_cell=None, name=None, **options):
    """A case whose cell is the one named, or with `make_cell` another."""

    def make():
        sizes = {"vocab_size": 17, "embedding_dim": 7, "units": 11} | options
        own = make_cell() if make_cell else cell
        return RNNLanguageModel(**sizes, num_layers=2, cell=own, dropout=0.3)

    name = f"RNNLanguageModel({name or ', '.join([cell, *options])})"
    inputs = {"token_ids": ids(17, S), "lengths": LENGTHS}
    return Case(name, make, lambda: inputs, {"token_ids": 1}, past=("token_ids",))


def bilm(boundary_ids=None):
    return BiLM(
        vocab_size=19,
        character_vocab_size=17,
        character_dim=5,
        widths=[1, 3],
        filters=[7, 11],
        units=17,
        projection_dim=7,
        num_layers=3,
        num_highways=1,
        activation="tanh",
        dropout=0.3,
        boundary_ids=boundary_ids,
    )


def bidaf_inputs():
    return {
        "context_ids": ids(19, S),
        "context_characters": characters(17, S),
        "context_lengths": LENGTHS,
        "query_ids": ids(19, T),
        "query_characters": characters(17, T, seed=1),
        "query_lengths": np.array([2, 3]),
    }


def forecaster_case(decoder, cell, quantiles, num_known, make_cell=None):
    """A case whose cell is the one named, or with `make_cell` another."""

    def make():
        return Forecaster(
            horizon=T,
            units=11,
            num_layers=2,
            cell=make_cell() if make_cell else cell,
            decoder=decoder,
            num_targets=2,
            num_known=num_known,
            quantiles=quantiles,
            scale=bool(quantiles),
            dropout=0.3,
        )

    inputs = {"window": floats(B, S, D), "lengths": LENGTHS}
    if num_known:
        inputs["known"] = floats(B, T, num_known)
    name = f"Forecaster({decoder}, {cell}, {len(quantiles)} quantiles)"
    return Case(name, make, lambda: inputs, {"window": 1})


LANGUAGE = [
    language_case("simple_rnn"),
    language_case("gru", tie_weights=True),
    language_case("lstm", tie_weights=True, embedding_dim=11),
]
PAST_LANGUAGE = [
    language_case("gru", name="key-value", units=10, attention="key_value", attention_window=2),
    language_case(
        "lstm",
        name="key-value-predict",
        units=15,
        tie_weights=True,
        attention="key_value_predict",
        attention_window=3,
    ),
]
BILM = [
    Case(
        name,
        lambda boundary_ids=boundary_ids: bilm(boundary_ids),
        lambda: {"character_ids": characters(17), "lengths": LENGTHS},
        {"character_ids": 1},
    )
    for name, boundary_ids in (("BiLM", None), ("BiLM(boundaries)", [2, 3]))
]
FORECASTERS = [
    forecaster_case("direct", "lstm", [], 0),
    forecaster_case("direct", "simple_rnn", [0.1, 0.5, 0.7], 5),
    forecaster_case("recurrent", "lstm", [0.2, 0.9], 5),
    forecaster_case("recurrent", "simple_rnn", [], 0),
]
BIDAF = [
    Case(
        "BiDAF",
        lambda: BiDAF(
            vocab_size=19,
            embedding_dim=7,
            character_vocab_size=17,
            character_dim=5,
            character_filters=13,
            units=11,
            character_width=2,
            num_highways=1,
            num_modelling_layers=3,
            dropout=0.3,
        ),
        bidaf_inputs,
        {f"{side}_{part}": 1 for side in ("context", "query") for part in ("ids", "characters")},
    )
]
ANY_CELL_LANGUAGE = [
    language_case("Keras's GRUCell", lambda: keras.layers.GRUCell(3, reset_after=False)),
    language_case("a cell of the user's", lambda: MinimalGatedCell(3), tie_weights=True),
    language_case("qrnn"),
    language_case("QRNN(ifo, window 3)", lambda: QRNN(3, 3, "ifo", zoneout=0.1)),
    language_case("QRNN(f, window 1)", lambda: QRNN(3, 1, "f"), tie_weights=True),
]
ANY_CELL_FORECASTERS = [
    forecaster_case("direct", "Keras's LSTMCell", [0.3], 0, lambda: keras.layers.LSTMCell(3)),
    forecaster_case("recurrent", "a cell of the user's", [], 5, lambda: MinimalGatedCell(3)),
    forecaster_case("direct", "qrnn", [0.3], 5),
]
OTHERS = [
    Case(
        "BiLMFeatures",
        lambda: BiLMFeatures(bilm([2, 3]), PIECES, GOES_ON, word_length=7, train=True),
        lambda: SPELLED | {"segment_ids": np.array([[0] * 5 + [1] * 2, [0] * 4 + [1] * 3])},
    ),
    Case(
        "LayerMix",
        lambda: LayerMix(layer_norm=True, l2=0.1),
        lambda: {"layers": floats(B, 3, S, D)},
        {"layers": 2},
    ),
    Case(
        "LinearForecast",
        lambda: LinearForecast(T, num_targets=2, known=[4, 2, 3], orders=[2]),
        lambda: {"window": floats(B, S, D), "known": floats(B, T, 3)},
        scale=30,
    ),
    Case(
        "BandWidths",
        lambda: BandWidths([0.1, 0.3, 0.7], num_targets=2),
        lambda: {"values": floats(B, T, 2, 3)},
    ),
    Case(
        "LinearNgrams",
        lambda: LinearNgrams(
            3, 31, [*PIECES[:3], [2], *PIECES[4:]], GOES_ON, longest=3, word_length=7
        ),
        lambda: SPELLED,
        scale=30,
    ),
]
CASES = [
    *LANGUAGE,
    *PAST_LANGUAGE,
    *BILM,
    *BIDAF,
    *FORECASTERS,
    *OTHERS,
    *ANY_CELL_LANGUAGE,
    *ANY_CELL_FORECASTERS,
]

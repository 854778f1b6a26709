"""Sizes and sequences that no layer can take are refused in the same words everywhere."""

import numpy as np
import pytest

from seqkeras import attention, models
from seqkeras.embeddings import CharacterCNN
from seqkeras.recurrent import GRU, LSTM, QRNN, RNN, Bidirectional, GRUCell
from seqkeras.shapes import require_positive
from seqkeras.transformer import Decoder, DecoderBlock, Encoder, EncoderBlock
from tests.arrays import floats, numbers
from tests.catalogue import FIRST
from tests.refusals import refusals

DOT = attention.DotScore()
COUNTS = {  # integers from 0 on
    *("first_position", "layer", "num_highways", "num_known", "num_segments", "Bridge.num_layers"),
}
# What Keras takes as it is, and the size of a part that other arguments leave out.
OTHERS = {"seed", "implementation", "RNNLanguageModel.attention_window"}
SIZED = {
    "Encoder": lambda size: Encoder(EncoderBlock(6, 3, 11), size),
    "Decoder": lambda size: Decoder(DecoderBlock(6, 3, 11), size),
    "BahdanauDecoder": lambda size: models.BahdanauDecoder(17, 7, size, attention=DOT),
}


RECURRENT = {
    "LSTM": lambda: LSTM(5),
    "RNN": lambda: RNN([GRUCell(5), GRUCell(3)]),
    "QRNN": lambda: QRNN(5),
    "Bidirectional": lambda: Bidirectional(GRU(5)),
    "RestrictedSelfAttention": lambda: attention.RestrictedSelfAttention(2, 3, window=2),
}


def test_a_size_is_a_positive_integer_in_every_layer_and_a_count_one_from_0_on():
    for case in FIRST:
        config = case.make().get_config()
        own = {name: config[name] for name in config.keys() - {"name", "trainable", "dtype"}}
        if any(isinstance(value, dict) for value in own.values()):
            continue  # made of layers
        for name, size in own.items():
            names = {name, f"{case.layer_class.__name__}.{name}"}
            if type(size) is not int or names & OTHERS:
                continue
            for wrong in (-1 if names & COUNTS else 0, True, 1.5):
                with pytest.raises(ValueError, match=f"{name}.*received"):
                    case.layer_class(**own | {name: wrong})


def test_other_attentions_give_zeros_for_no_step():
    nothing = floats(2, 0, 6)
    assert numbers(attention.KeyValueAttention(2)(nothing)[0]).shape == (2, 0, 3)
    layer = attention.MultiHeadAttention(2, 3, use_bias=False)
    assert np.all(numbers(layer(floats(2, 3, 6), nothing, nothing)) == np.zeros((2, 3, 6)))


def built(layer, *shapes):
    """A layer that has been called with arrays of these shapes."""
    layer(*(floats(*shape) for shape in shapes))
    return layer


def flattened(make, names, name):
    """Call a built attention with one input that has no axis of length."""

    def call():
        layer, inputs = make(), {each: floats(2, 3, 6) for each in names}
        layer(**inputs)
        layer(**inputs | {name: floats(2, 6)})

    return call


ATTENTIONS = {
    "AdditiveScore": (lambda: attention.AdditiveScore(5), ["query", "key"]),
    "BiAttention": (attention.BiAttention, ["context", "query"]),
    "Attention": (lambda: attention.Attention(attention.DotScore()), ["query", "key", "value"]),
    "MultiHeadAttention": (lambda: attention.MultiHeadAttention(2, 3), ["query", "key", "value"]),
}
NOTHING = np.zeros((2, 0), int)
EMPTY = {"token_ids": NOTHING, "lengths": np.array([0, 0])}
SOURCE = {"token_ids": np.ones((2, 3), int), "lengths": np.array([3, 2])}
STEP = "must have at least one step"
SHAPE = "must have shape (batch, length, dim); received (2, 6)."
test_sizes_and_sequences_that_no_layer_can_take_are_refused = refusals(
    *(
        (lambda size=size: require_positive([], a=size), "list: a must be a positive integer; rec")
        for size in (np.int64(5), True, 2.0, "5", None, -1)
    ),
    (lambda: require_positive([], a=0, b=True, c=3), "list: a must be a positive integer; receive"),
    *(
        (lambda make=make: make(True), f"{who}: ... must be a positive integer; received True")
        for who, make in SIZED.items()
    ),
    *(
        case
        for who, make in RECURRENT.items()
        for case in (
            (lambda make=make: make()(floats(2, 0, 7)), f"{who}: ... {STEP}; received shape (2, 0"),
            (lambda make=make: built(make(), (2, 3, 6))(floats(2, 6)), f"{who}: ... {SHAPE}"),
        )
    ),
    (lambda: built(attention.KeyValueAttention(2), (2, 3, 6))(floats(2, 6)), f"sequence {SHAPE}"),
    *(
        (flattened(make, names, name), f"{who}: {name} {SHAPE}")
        for who, (make, names) in ATTENTIONS.items()
        for name in names
    ),
    *(
        (
            lambda make=make: make(DOT)(floats(2, 3, 7), floats(2, 0, 7), floats(2, 0, 5)),
            f"Attention: key {STEP}; received shape (2, 0, 7).",
        )
        for make in (attention.HardAttention, lambda score: attention.LocalAttention(score, 2))
    ),
    (lambda: models.RNNLanguageModel(17, 7, 5, cell="gru")(EMPTY), f"GRU: sequences {STEP}"),
    (
        lambda: models.RNNSeq2Seq.bahdanau(17, 13, 7, 5, 11)({**SOURCE, "target_ids": NOTHING}),
        f"Decoder: target_ids {STEP}",
    ),
    (
        lambda: models.Forecaster(3, 5, cell="lstm")({"window": floats(2, 0, 1)}),
        f"LSTM: sequences {STEP}",
    ),
    (lambda: CharacterCNN(11, 5, [2], [3])(np.zeros((2, 0, 7), int)), f"character_ids {STEP}"),
    (lambda: CharacterCNN(11, 5, [2], [3])(NOTHING), "CharacterCNN: character_ids must have shape"),
)

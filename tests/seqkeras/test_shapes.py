"""Sizes and sequences that no layer can take are refused in the same words everywhere."""

import numpy as np
import pytest

from seqkeras.attention import (
    AdditiveScore,
    Attention,
    BiAttention,
    DotScore,
    HardAttention,
    KeyValueAttention,
    LocalAttention,
    MultiHeadAttention,
    RestrictedSelfAttention,
)
from seqkeras.embeddings import CharacterCNN, LearnedPositions, TokenEmbedding
from seqkeras.models import (
    BahdanauDecoder,
    BiDAF,
    BiLM,
    Forecaster,
    RecurrentStack,
    RNNLanguageModel,
    RNNSeq2Seq,
    Transformer,
    TreeClassifier,
)
from seqkeras.recurrent import GRU, LSTM, QRNN, RNN, Bidirectional, GRUCell, TreeLSTM
from seqkeras.shapes import require_positive
from seqkeras.transformer import Decoder, DecoderBlock, Encoder, EncoderBlock, FeedForward
from tests.arrays import floats, numbers

SIZED = {
    "LSTMCell": LSTM,
    "QRNN": QRNN,
    "TreeLSTM": TreeLSTM,
    "AdditiveScore": AdditiveScore,
    "KeyValueAttention": KeyValueAttention,
    "TokenEmbedding": lambda size: TokenEmbedding(size, 7),
    "LearnedPositions": lambda size: LearnedPositions(size, 7),
    "FeedForward": FeedForward,
    "Encoder": lambda size: Encoder(EncoderBlock(6, 3, 11), size),
    "Decoder": lambda size: Decoder(DecoderBlock(6, 3, 11), size),
    "Transformer": lambda size: Transformer(17, size, 6, 1, 3, 11),
    "MultiHeadAttention": lambda size: MultiHeadAttention(2, size),
    "RNNLanguageModel": lambda size: RNNLanguageModel(17, 7, size),
    "RecurrentStack": lambda size: RecurrentStack("gru", size),
    "BahdanauDecoder": lambda size: BahdanauDecoder(17, 7, size, attention=DotScore()),
    "Forecaster": lambda size: Forecaster(3, size),
    "TreeClassifier": lambda size: TreeClassifier(17, 7, size, 3),
    "BiDAF": lambda size: BiDAF(17, 7, 11, 5, 3, size),
    "BiLM": lambda size: BiLM(size, 11, 5, [2], [3], 7, 5),
}


@pytest.mark.parametrize("size", [np.int64(5), True, 2.0, "5", None, -1], ids=repr)
@pytest.mark.parametrize("who", SIZED)
def test_a_size_that_is_no_integer_of_pythons_is_refused(who, size):
    with pytest.raises(ValueError, match=rf"{who}: \w+ must be a positive integer; received "):
        SIZED[who](size)


def test_every_size_that_is_wrong_is_named():
    message = "list: a must be a positive integer; received 0. b must be a positive integer; rec"
    with pytest.raises(ValueError, match=f"^{message}eived True.$"):
        require_positive([], a=0, b=True, c=3)


RECURRENT = {
    "LSTM": lambda: LSTM(5),
    "RNN": lambda: RNN([GRUCell(5), GRUCell(3)]),
    "QRNN": lambda: QRNN(5),
    "Bidirectional": lambda: Bidirectional(GRU(5)),
    "RestrictedSelfAttention": lambda: RestrictedSelfAttention(2, 3, window=2),
}


@pytest.mark.parametrize("who", RECURRENT)
def test_a_sequence_without_a_step_is_refused(who):
    message = rf"{who}: sequences? must have at least one step; received shape \(2, 0, 7\)\."
    with pytest.raises(ValueError, match=message):
        RECURRENT[who]()(floats(2, 0, 7))


@pytest.mark.parametrize("who", [*RECURRENT, "KeyValueAttention"])
def test_a_built_layer_refuses_what_is_no_sequence(who):
    layer = RECURRENT[who]() if who in RECURRENT else KeyValueAttention(2)
    layer(floats(2, 3, 6))
    message = rf"{who}: sequences? must have shape \(batch, length, dim\); received \(2, 6\)\."
    with pytest.raises(ValueError, match=message):
        layer(floats(2, 6))


ATTENTIONS = {
    "AdditiveScore": (lambda: AdditiveScore(5), ["query", "key"]),
    "BiAttention": (BiAttention, ["context", "query"]),
    "Attention": (lambda: Attention(DotScore()), ["query", "key", "value"]),
    "MultiHeadAttention": (lambda: MultiHeadAttention(2, 3), ["query", "key", "value"]),
}


@pytest.mark.parametrize("who", ATTENTIONS)
def test_a_built_attention_refuses_what_is_no_sequence(who):
    make, names = ATTENTIONS[who]
    layer, inputs = make(), {name: floats(2, 3, 6) for name in names}
    layer(**inputs)
    for name in names:
        message = rf"{who}: {name} must have shape \(batch, length, dim\); received \(2, 6\)\."
        with pytest.raises(ValueError, match=message):
            layer(**inputs | {name: floats(2, 6)})


def test_a_built_character_cnn_refuses_what_is_no_text():
    layer = CharacterCNN(11, 5, [2], [3])
    layer(np.ones((2, 3, 7), int))
    with pytest.raises(ValueError, match="CharacterCNN: character_ids must have shape"):
        layer(np.ones((2, 3), int))


@pytest.mark.parametrize("make", [HardAttention, lambda score: LocalAttention(score, 2)])
def test_a_source_without_a_key_is_refused(make):
    message = r"Attention: key must have at least one step; received shape \(2, 0, 7\)\."
    with pytest.raises(ValueError, match=message):
        make(DotScore())(floats(2, 3, 7), floats(2, 0, 7), floats(2, 0, 5))


def test_other_attentions_give_zeros_for_no_step():
    nothing = floats(2, 0, 6)
    assert numbers(KeyValueAttention(2)(nothing)[0]).shape == (2, 0, 3)
    layer = MultiHeadAttention(2, 3, use_bias=False)
    assert np.all(numbers(layer(floats(2, 3, 6), nothing, nothing)) == np.zeros((2, 3, 6)))


def test_a_model_of_nothing_is_refused():
    ids, lengths = np.zeros((2, 0), int), np.array([0, 0])
    with pytest.raises(ValueError, match="GRU: sequences must have at least one step"):
        RNNLanguageModel(17, 7, 5, cell="gru")({"token_ids": ids, "lengths": lengths})
    with pytest.raises(ValueError, match="Decoder: target_ids must have at least one step"):
        source = {"token_ids": np.ones((2, 3), int), "lengths": np.array([3, 2])}
        RNNSeq2Seq.bahdanau(17, 13, 7, 5, 11)({**source, "target_ids": ids})
    with pytest.raises(ValueError, match="LSTM: sequences must have at least one step"):
        Forecaster(3, 5, cell="lstm")({"window": floats(2, 0, 1)})
    with pytest.raises(ValueError, match="CharacterCNN: character_ids must have at least one step"):
        CharacterCNN(11, 5, [2], [3])(np.zeros((2, 0, 7), int))

"""What a model can not read is refused before it computes, in one sentence that says what came."""

import inspect

import numpy as np
import pytest

from seqkeras.models import GPT, Bert, MaskedLMHead, RNNSeq2Seq, Transformer, WithHeads
from seqkeras.transformer import Decoder, DecoderBlock, Encoder, EncoderBlock

SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 3, "feed_forward_dim": 11}
TOKEN_IDS = np.array([[3, 8, 12], [7, 1, 4]])
GIVEN = {
    "token_ids": TOKEN_IDS,
    "lengths": np.array([3, 2]),
    "segment_ids": np.array([[0, 0, 1], [0, 1, 1]]),
    "target_ids": TOKEN_IDS,
    "masked_positions": np.array([[0], [2]]),
}
MODELS = {
    "Bert": (
        lambda: Bert(17, **SIZES, max_length=5),
        ["token_ids", "lengths", "segment_ids"],
    ),
    "WithHeads": (
        lambda: WithHeads(Bert(17, **SIZES, max_length=5), {"masked": MaskedLMHead(17)}),
        ["token_ids", "lengths", "segment_ids", "masked_positions"],
    ),
    "GPT": (lambda: GPT(17, **SIZES, max_length=5), ["token_ids"]),
    "Transformer": (
        lambda: Transformer(17, 13, **SIZES, max_length=5, positions="learned"),
        ["token_ids", "lengths", "target_ids"],
    ),
}
LIMITS = {  # who refuses, and in which words
    "token_ids": ("TokenEmbedding", 17, "vocab_size"),
    "target_ids": ("TokenEmbedding", 13, "vocab_size"),
    "segment_ids": ("Bert", 2, "num_segments"),
    "masked_positions": ("MaskedLMHead", 3, "the length"),
}
every_input = pytest.mark.parametrize(
    "model, name",
    [(model, name) for model, (_, names) in MODELS.items() for name in names if name in LIMITS],
)


def made(model):
    """A model, and what it takes."""
    make, names = MODELS[model]
    return make(), {name: GIVEN[name] for name in names}


@every_input
@pytest.mark.parametrize("below", [True, False], ids=["below", "beyond"])
def test_an_id_out_of_range_is_refused(model, name, below):
    call, given = made(model)
    who, limit, limit_name = LIMITS[name]
    wrong = -1 if below else limit
    given[name] = given[name].copy()
    given[name][1, -1] = wrong
    message = f"{who}: {name.replace('target', 'token')} must be from 0 to {limit - 1}, as "
    with pytest.raises(ValueError, match=f"{message}{limit_name} is {limit}; received {wrong}"):
        call(given)


@every_input
def test_ids_that_are_not_integers_are_refused(model, name):
    call, given = made(model)
    given[name] = given[name].astype("float32")
    message = (
        f"{LIMITS[name][0]}: {name.replace('target', 'token')} must be integers; rec.* float32"
    )
    with pytest.raises(ValueError, match=message):
        call(given)


@pytest.mark.parametrize(
    "model, name", [*((model, "token_ids") for model in MODELS), ("Transformer", "target_ids")]
)
def test_a_sequence_beyond_the_learned_positions_is_refused(model, name):
    call, given = made(model)
    given |= {each: np.ones((2, 6), int) for each in (name, "segment_ids") if each in given}
    message = "LearnedPositions: a sequence must have at most max_length, 5, positions; received 6"
    with pytest.raises(ValueError, match=message):
        call(given)


@pytest.mark.parametrize("ids", [[0, 13], [-1]], ids=str)
def test_what_is_never_generated_is_within_the_vocabulary(ids):
    message = r"^Transformer: never_generated must be ids of the target, from 0 to 12; received \["
    with pytest.raises(ValueError, match=message):
        Transformer(17, 13, **SIZES, never_generated=ids)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: Transformer(17, 13, **SIZES, **options),
        lambda **options: RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11, **options),
    ],
    ids=["Transformer", "RNNSeq2Seq"],
)
def test_something_must_be_left_to_generate(make):
    make(never_generated=range(12))
    message = r"^\w+: never_generated must leave one id of the target; received all of them\.$"
    with pytest.raises(ValueError, match=message):
        make(never_generated=range(13))


@pytest.mark.parametrize("model", ["GPT", "Transformer"])
def test_a_token_beyond_the_room_of_the_cache_is_refused(model):
    called, given = made(model)
    called(given)
    state = (
        called.initial_state(2, 3)
        if model == "GPT"
        else called.encode(given["token_ids"], given["lengths"], max_length=3)
    )
    for _ in range(3):
        _, state = called.step(np.array([[1], [2]]), state)
    message = "^Decoder: the cache must have room for every token; it has 3 places, and received 1"
    with pytest.raises(ValueError, match=message):
        called.step(np.array([[1], [2]]), state)


@pytest.mark.parametrize(
    "make",
    [
        lambda **sizes: Bert(17, **sizes),
        lambda **sizes: GPT(17, **sizes, max_length=5),
        lambda **sizes: Transformer(17, 13, **sizes),
        lambda num_layers, **sizes: Encoder(EncoderBlock(**sizes), num_layers),
        lambda num_layers, **sizes: Decoder(DecoderBlock(**sizes), num_layers),
        lambda num_layers, **sizes: EncoderBlock(**sizes),
        lambda num_layers, **sizes: DecoderBlock(**sizes),
    ],
    ids=["Bert", "GPT", "Transformer", "Encoder", "Decoder", "EncoderBlock", "DecoderBlock"],
)
def test_heads_that_do_not_divide_the_width_are_refused(make):
    message = r"^\w+: num_heads must divide hidden_dim; received num_heads=4, hidden_dim=6\.$"
    with pytest.raises(ValueError, match=message):
        make(**SIZES | {"num_heads": 4})
    message = r"^\w+: num_heads must be a positive integer; received 0\.$"
    with pytest.raises(ValueError, match=message):
        make(**SIZES | {"num_heads": 0})


@pytest.mark.parametrize(
    "sizes, options, message",
    [
        ((17, 13), {}, r"embedding_dim must be .* None\. units must be .* received None\.$"),
        ((17, 13, 5, -7), {}, r"units must be a positive integer; received -7\.$"),
        ((None, 13, 5, 7), {}, r"source_vocab_size, .* source_features, of frames, must be given"),
        ((17, 13, 5, 7), {"layers": 3}, r"layers can not be given; the options are .*, cell, "),
    ],
)
@pytest.mark.parametrize("preset", ["bahdanau", "classical_context"])
def test_a_preset_refuses_by_its_own_name(preset, sizes, options, message):
    with pytest.raises(ValueError, match=rf"^RNNSeq2Seq\.{preset}: {message}"):
        getattr(RNNSeq2Seq, preset)(*sizes, **options)


def test_the_preset_luong_says_that_h_tilde_is_its_readout():
    with pytest.raises(ValueError, match=r"^RNNSeq2Seq\.luong: readout can not be given; the opt"):
        RNNSeq2Seq.luong(17, 13, 5, 7, readout=True)


def test_a_preset_of_frames_has_no_source_vocabulary_and_says_what_it_takes():
    model = RNNSeq2Seq.cho(source_features=3, target_vocab_size=13, embedding_dim=5, units=7)
    assert model.source_features == 3
    names = ["source_vocab_size", "target_vocab_size", "embedding_dim", "units", "decoder_units"]
    assert [*inspect.signature(RNNSeq2Seq.cho).parameters] == [*names, "options"]

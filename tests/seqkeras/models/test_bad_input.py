"""Arguments that make no model, and tokens that a cache has no room for, are refused."""

import inspect

from seqkeras.models import GPT, Bert, RNNSeq2Seq, Transformer
from seqkeras.transformer import DecoderBlock, EncoderBlock
from tests.refusals import refusals

SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 3, "feed_forward_dim": 11}


def test_a_preset_of_frames_has_no_source_vocabulary_and_says_what_it_takes():
    model = RNNSeq2Seq.cho(source_features=3, target_vocab_size=13, embedding_dim=5, units=7)
    assert model.source_features == 3
    names = ["source_vocab_size", "target_vocab_size", "embedding_dim", "units", "decoder_units"]
    assert [*inspect.signature(RNNSeq2Seq.cho).parameters] == [*names, "options"]


def transformer(**options):
    return lambda: Transformer(17, 13, **SIZES | options)


def preset(name, *sizes, **options):
    return lambda: getattr(RNNSeq2Seq, name)(*sizes, **options)


FOUR = SIZES | {"num_heads": 4}
BLOCK = {name: size for name, size in FOUR.items() if name != "num_layers"}
DIVIDE = "num_heads must divide hidden_dim; received num_heads=4, hidden_dim=6."
LEFT = "never_generated must leave one id of the target; received all of them."
test_what_makes_no_model_is_refused = refusals(
    (lambda: Bert(17, **FOUR), f"Bert: {DIVIDE}"),
    (lambda: GPT(17, **FOUR, max_length=5), f"GPT: {DIVIDE}"),
    (transformer(num_heads=4), f"Transformer: {DIVIDE}"),
    (lambda: EncoderBlock(**BLOCK), f"EncoderBlock: {DIVIDE}"),
    (lambda: DecoderBlock(**BLOCK), f"DecoderBlock: {DIVIDE}"),
    (lambda: Bert(17, **SIZES | {"num_heads": 0}), "Bert: num_heads must be a positive integer; r"),
    (lambda: Bert(17, **SIZES, pooler="g"), "Bert: pooler must be one of (...); received 'g'."),
    (transformer(never_generated=[0, 13]), "never_generated must be ids of the target, from 0 to"),
    (transformer(never_generated=[-1]), "ids of the target, from 0 to 12; received [-1]"),
    (transformer(never_generated=range(13)), f"Transformer: {LEFT}"),
    (preset("bahdanau", 17, 13, 5, 7, 11, never_generated=range(13)), f"BahdanauDecoder: {LEFT}"),
    (
        lambda: Transformer(17, 13, **SIZES, shared_embeddings="all"),
        "Transformer: source_vocab_size and target_vocab_size must be equal to share em",
    ),
    (transformer(positions="sinusoidal"), "positions must be one of ('paper', ...); received 'sin"),
    (transformer(shared_embeddings=True), "shared_embeddings must be one of ...; received True."),
    (transformer(max_length=0), "Transformer: max_length must be a positive integer; received 0."),
    (preset("bahdanau", 17, 13), "RNNSeq2Seq.bahdanau: embedding_dim must be ... None. units must"),
    (preset("cho", 17, 13, 5, -7), "RNNSeq2Seq.cho: units must be a positive integer; received -7"),
    (preset("classical_context", None, 13, 5, 7), "classical_context: source_vocab_size, ... sour"),
    (preset("bahdanau", 17, 13, 5, 7, layers=3), "RNNSeq2Seq.bahdanau: layers can not be given; t"),
    (preset("luong", 17, 13, 5, 7, readout=True), "RNNSeq2Seq.luong: readout can not be given; th"),
)


def test_all_but_one_may_be_never_generated():
    transformer(never_generated=range(12))()

"""A model's dictionary of inputs: missing and unknown inputs are refused, not ignored."""

import numpy as np
import pytest

from seqkeras.models import (
    GPT,
    Bert,
    MaskedLMHead,
    RNNLanguageModel,
    RNNSeq2Seq,
    SentenceEncoder,
    Transformer,
    WithHeads,
)

TOKENS = {"token_ids": np.array([[3, 8, 12], [7, 1, 4]]), "lengths": np.array([3, 2])}
MASK = np.array([[True, True, True], [True, True, False]])


SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 3, "feed_forward_dim": 11}


def bert():
    return Bert(17, **SIZES)


MODELS = {
    "Bert": bert,
    "WithHeads": lambda: WithHeads(bert(), {"masked": MaskedLMHead(17)}),
    "SentenceEncoder": lambda: SentenceEncoder(bert()),
    "GPT": lambda: GPT(17, **SIZES, max_length=5),
    "Transformer": lambda: Transformer(17, 17, **SIZES),
}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
@pytest.mark.parametrize("extra", ["attention_mask", "padding_mask", "token_type_ids"])
def test_an_input_that_nobody_reads_is_refused(name, extra):
    message = rf"{name}: .*inputs must be among \['token_ids', .*\]; received \['{extra}'\], which"
    with pytest.raises(ValueError, match=message):
        MODELS[name]()(TOKENS | {extra: MASK})


@every_model
def test_an_input_that_must_be_there_is_named(name):
    message = rf"{name}: inputs must hold \['token_ids'.*\]; received \['lengths'\]\."
    with pytest.raises(ValueError, match=message):
        MODELS[name]()({"lengths": TOKENS["lengths"]})


@every_model
def test_a_mask_in_place_of_lengths_is_refused(name):
    message = rf"{name}: .*lengths must have shape \(batch\), .* received \(2, 3\)\."
    with pytest.raises(ValueError, match=message):
        MODELS[name]()(TOKENS | {"lengths": MASK})


@every_model
@pytest.mark.parametrize("shape", [(3,), (2, 3, 4, 1)])
def test_token_ids_of_another_rank_are_refused(name, shape):
    message = (
        rf"{name}: .*token_ids must have shape \(batch, length\); received \({shape[0]},.*\)\."
    )
    with pytest.raises(ValueError, match=message):
        MODELS[name]()(TOKENS | {"token_ids": np.ones(shape, int)})


@pytest.mark.parametrize("name", ["Bert", "WithHeads", "SentenceEncoder"])
@pytest.mark.parametrize(
    "extra, axes",
    [({"lengths": np.array([3, 2, 1])}, "batch"), ({"segment_ids": MASK[:, :2]}, "batch, length")],
)
def test_lengths_and_segments_of_other_texts_are_refused(name, extra, axes):
    (which,) = extra
    message = rf"{name}: {which} must have shape \({axes}\), .* of token_ids \(2, 3\); received"
    with pytest.raises(ValueError, match=message):
        MODELS[name]()(TOKENS | extra)


LENGTHS = {  # lengths that are none of three tokens, and what is said of them
    "beyond": (np.array([3, 4]), "from 0 to 3, the length; received 4"),
    "negative": (np.array([-1, 2]), "from 0 to 3, the length; received -1"),
    "floats": (np.array([3.0, 2.0]), r"integers; received float\d\d"),
}
READERS = {  # what reads a piece of text beside the call
    "GPT.read": ("GPT", lambda **given: MODELS["GPT"]().read(**given)),
    "RNNLanguageModel.read": (
        "RNNLanguageModel",
        lambda **given: RNNLanguageModel(17, 5, 7).read(**given),
    ),
    "Transformer.encode": ("Transformer", lambda **given: MODELS["Transformer"]().encode(**given)),
    "RNNSeq2Seq.encode": (
        "RNNSeq2Seq",
        lambda **given: RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11).encode(**given),
    ),
}


@every_model
@pytest.mark.parametrize("lengths, message", LENGTHS.values(), ids=LENGTHS)
def test_lengths_that_can_not_be_are_refused(name, lengths, message):
    with pytest.raises(ValueError, match=rf"{name}: .*lengths must be {message}\."):
        MODELS[name]()(TOKENS | {"lengths": lengths})


@pytest.mark.parametrize("name, read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("lengths, message", LENGTHS.values(), ids=LENGTHS)
def test_what_reads_a_piece_of_text_looks_at_its_lengths(name, read, lengths, message):
    with pytest.raises(ValueError, match=rf"^{name}: lengths must be {message}\.$"):
        read(**TOKENS | {"lengths": lengths})
    with pytest.raises(ValueError, match=rf"^{name}: lengths must have shape \(batch\)"):
        read(**TOKENS | {"lengths": np.array([3])})


@pytest.mark.parametrize("shape", [(1, 4), (2,), (2, 4, 1)])
@pytest.mark.parametrize(
    "make", [MODELS["Transformer"], lambda: RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11)], ids=["T", "RNN"]
)
def test_targets_of_other_sources_are_refused(make, shape):
    message = r"target_ids must have shape \(batch, length\), .* of token_ids \(2, 3\); received"
    with pytest.raises(ValueError, match=message):
        make()(TOKENS | {"target_ids": np.ones(shape, int)})


@every_model
def test_an_array_in_place_of_the_dictionary_is_refused(name):
    message = rf"{name}: inputs must be a dictionary of \['token_ids', .*\]; received \w+\."
    with pytest.raises(ValueError, match=message):
        MODELS[name]()(TOKENS["token_ids"])


def test_every_reason_is_given_at_once():
    with pytest.raises(ValueError, match="must be among .* lengths must have shape"):
        bert()(TOKENS | {"lengths": MASK, "padding_mask": MASK})
    with pytest.raises(ValueError, match="must hold .* must be among"):
        bert()({"input_ids": TOKENS["token_ids"]})

"""What a model can not read is refused before it computes, in words that say what came."""

import keras
import numpy as np
import pytest

from seqkeras.models import (
    GPT,
    BiDAF,
    BiLM,
    Forecaster,
    MaskedLMHead,
    RNNLanguageModel,
    RNNSeq2Seq,
    SentenceEncoder,
    Transformer,
    TreeClassifier,
    WithHeads,
)
from tests.arrays import close
from tests.catalogue import call, models, seq2seq, trees
from tests.refusals import refusals
from tests.seqkeras.models.support import SIZES, bert

TOKENS = {"token_ids": np.array([[3, 8, 12], [7, 1, 4]]), "lengths": np.array([3, 2])}
TEXTS = TOKENS | {"segment_ids": np.array([[0, 0, 1], [0, 1, 1]])}
MASK = np.array([[True, True, True], [True, True, False]])


def translator(**options):
    return Transformer(17, 13, **SIZES, max_length=5, positions="learned", **options)


TRANSFORMERS = {  # how each is made, and what it takes
    "Bert": (lambda: bert(max_length=5), TEXTS),
    "WithHeads": (
        lambda: WithHeads(bert(max_length=5), {"masked": MaskedLMHead(17)}),
        TEXTS | {"masked_positions": np.array([[0], [2]])},
    ),
    "SentenceEncoder": (lambda: SentenceEncoder(bert(max_length=5)), TEXTS),
    "GPT": (lambda: GPT(17, **SIZES, max_length=5), {"token_ids": TOKENS["token_ids"]}),
    "Transformer": (translator, TOKENS | {"target_ids": TOKENS["token_ids"]}),
}
LIMITS = {  # who refuses, and in which words
    "token_ids": ("TokenEmbedding: token_ids", 17, "vocab_size"),
    "target_ids": ("TokenEmbedding: token_ids", 13, "vocab_size"),
    "segment_ids": ("Bert: segment_ids", 2, "num_segments"),
    "masked_positions": ("MaskedLMHead: masked_positions", 3, "the length"),
}
RECURRENT = {
    case.layer_class: case
    for case in (*seq2seq.CASES, *models.CASES, *trees.CASES)
    if issubclass(case.layer_class, keras.Model)
}
SIDES = [
    f"{side}_{part}" for side in ("context", "query") for part in ("ids", "characters", "lengths")
]
REQUIRED = {
    RNNSeq2Seq: ["token_ids", "lengths", "target_ids"],
    RNNLanguageModel: ["token_ids"],
    BiDAF: SIDES,
    BiLM: ["character_ids"],
    Forecaster: ["window"],
    TreeClassifier: ["token_ids", "lengths", "children", "levels"],
}
LENGTHS = {  # lengths that are none of three tokens, and what is said of them
    "from 0 to 3, the length; received 4.": np.array([3, 4]),
    "from 0 to 3, the length; received -1.": np.array([-1, 2]),
    "integers; received float": np.array([3.0, 2.0]),
}


def of(name, **changes):
    make, given = TRANSFORMERS[name]
    return lambda: make()(given | changes)


def changed(ids, wrong):
    ids = ids.copy()
    ids[1, -1] = wrong
    return ids


def refusals_of(name):
    """What a model of token ids refuses: pairs of a call and a message."""
    make, given = TRANSFORMERS[name]
    yield (
        of(name, mask=MASK),
        f"{name}: ...inputs must be among ['token_ids', ...; received ['mask'], w",
    )
    yield lambda: make()({"lengths": TOKENS["lengths"]}), f"{name}: inputs must hold ['token_ids'"
    yield (
        lambda: make()(TOKENS["token_ids"]),
        f"{name}: inputs must be a dictionary of ['token_ids'",
    )
    for shape in [(3,), (2, 3, 4, 1)]:
        message = f"{name}: ...token_ids must have shape (batch, length); received ({shape[0]},"
        yield of(name, token_ids=np.ones(shape, int)), message
    if "lengths" in given:
        message = f"{name}: ...lengths must have shape (batch), ... received (2, 3)."
        yield of(name, lengths=MASK), message
        for message, lengths in LENGTHS.items():
            yield of(name, lengths=lengths), f"{name}: ...lengths must be {message}"
    for inputs, (who, limit, limit_name) in LIMITS.items():
        if inputs in given and name != "SentenceEncoder":
            for wrong in (-1, limit):
                message = (
                    f"must be from 0 to {limit - 1}, as {limit_name} is {limit}; received {wrong}"
                )
                yield of(name, **{inputs: changed(given[inputs], wrong)}), f"{who} {message}"
            floats = {inputs: given[inputs].astype("float32")}
            yield of(name, **floats), f"{who} must be integers; rec... float32"
    for inputs in {"token_ids", "target_ids"} & {*given}:
        names = {inputs, "segment_ids"} & {*given}
        long = {each: np.ones((2, 6), int) for each in names}
        yield of(name, **long), "a sequence must have at most max_length, 5, positions; received 6"


def refusals_of_recurrent(kind):
    """What a recurrent model refuses, before and after it is built."""
    case, name = RECURRENT[kind], kind.__name__
    inputs = case.inputs()
    for make in (case.make, case.built):
        for missing in REQUIRED[kind]:
            rest = {key: each for key, each in inputs.items() if key != missing}
            message = f"{name}: inputs must hold ['{missing}']; received "
            yield lambda make=make, rest=rest: make()(rest), message
        yield lambda make=make: make()(np.ones((2, 3))), f"{name}: inputs must be a dictionary of "
    extra = inputs | {"padding_mask": np.ones((2, 5), bool)}
    yield lambda: case.built()(extra), f"{name}: ...among ...; received ['padding_mask'], which"
    if "lengths" in inputs and "token_ids" in inputs:
        mask = inputs | {"lengths": np.ones(inputs["token_ids"].shape, bool)}
        yield lambda: case.built()(mask), f"{name}: ...lengths must have shape (batch), ...; rec"
    for key, (_, limit) in getattr(case.make(), "id_limits", {}).items():
        for wrong in (-1, limit):
            given = inputs | {key: changed(inputs[key], wrong)}
            message = f": {key} must be from 0 to {limit - 1}, as ...d {wrong}"
            yield lambda given=given: case.built()(given), message


test_what_a_model_of_tokens_can_not_read_is_refused = refusals(
    *(each for name in TRANSFORMERS for each in refusals_of(name))
)
test_what_a_recurrent_model_can_not_read_is_refused = refusals(
    *(each for kind in REQUIRED for each in refusals_of_recurrent(kind))
)


def test_every_recurrent_model_is_here():
    assert set(RECURRENT) == set(REQUIRED)


def test_the_labels_of_a_batch_of_trees_may_come_along():
    case = RECURRENT[TreeClassifier]
    labels = np.zeros(case.inputs()["token_ids"].shape, int)
    expected = call(case.built(), case.inputs())
    close(call(case.built(), case.inputs() | {"labels": labels}), expected)


READERS = {  # what reads a piece of text beside the call
    "GPT": lambda **given: GPT(17, **SIZES, max_length=5).read(**given),
    "RNNLanguageModel": lambda **given: RNNLanguageModel(17, 5, 7).read(**given),
    "Transformer": lambda **given: translator().encode(**given),
    "RNNSeq2Seq": lambda **given: RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11).encode(**given),
}
OTHER = "must have shape (batch, length), ... of token_ids (2, 3); received"
test_lengths_targets_and_segments_of_other_texts_are_refused = refusals(
    *(
        (
            lambda read=read, wrong=wrong: read(**TOKENS | {"lengths": wrong}),
            f"{name}: lengths {message}",
        )
        for name, read in READERS.items()
        for message, wrong in (
            *((f"must be {message}", lengths) for message, lengths in LENGTHS.items()),
            ("must have shape (batch)", np.array([3])),
        )
    ),
    *(
        (lambda make=make, shape=shape: make()(TOKENS | {"target_ids": np.ones(shape, int)}), OTHER)
        for make in (translator, lambda: RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11))
        for shape in [(1, 4), (2,), (2, 4, 1)]
    ),
    *(
        case
        for name in ("Bert", "WithHeads", "SentenceEncoder")
        for case in (
            (of(name, segment_ids=MASK[:, :2]), f"{name}: segment_ids {OTHER}"),
            (
                of(name, lengths=np.array([3, 2, 1])),
                f"{name}: lengths must have shape (batch), ... of token_ids (2, 3); received",
            ),
        )
    ),
)


def test_every_reason_is_given_at_once():
    with pytest.raises(ValueError, match="must be among .* lengths must have shape"):
        bert(max_length=5)(TOKENS | {"lengths": MASK, "padding_mask": MASK})
    with pytest.raises(ValueError, match="must hold .* must be among"):
        bert(max_length=5)({"input_ids": TOKENS["token_ids"]})

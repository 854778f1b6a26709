"""RNNSeq2Seq: the formula of every wiring, attention and context; what it refuses."""

import functools

import numpy as np
import pytest
from keras import ops

from seqkeras.attention import (
    Attention,
    DotScore,
    GeneralScore,
    HardAttention,
    LocalAttention,
)
from seqkeras.models import RNNSeq2Seq
from seqkeras.models.rnn_wirings import SCORES
from seqkeras.schedules import LinearDecay
from seqkeras.values import BANNED_LOGIT
from tests import references
from tests.agreement import DTYPES
from tests.arrays import close, numbers, randomize
from tests.catalogue import seq2seq
from tests.catalogue.case import S, T
from tests.catalogue.seq2seq import SIZES, translation_inputs
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long

some_models = pytest.mark.parametrize(
    "case",
    [seq2seq.BAHDANAU[0], seq2seq.CLASSICAL[0], seq2seq.LUONG[1]],
    ids=lambda case: case.name,
)
WINDOW = 1
NEVER_GENERATED = [0, 5]
GENERATED = np.delete(np.arange(SIZES["target_vocab_size"]), NEVER_GENERATED)
LOCAL = {"local_monotonic": "monotonic", "local_predictive": "predictive"}
CLASSICAL = {"attention": None}
LUONG = {"attention_place": "after", "wiring": "initial_state"}
SAME_DIM = {"decoder_units": 22, "bridge_layers": 0}  # as wide as both directions of the encoder
FORMULAS = {
    "bahdanau gru": {},
    "bahdanau lstm": {"cell": "lstm"},
    "bahdanau, two layers": {"cell": "lstm", "encoder_layers": 2, "decoder_layers": 2},
    "bahdanau, only the context": {"wiring": "context", "attention": "general"},
    "bahdanau, local": {"attention": "local_monotonic", "initial_cell": "bridge", "cell": "lstm"},
    "sutskever": CLASSICAL
    | {"wiring": "initial_state", "cell": "lstm", "initial_cell": "bridge", "readout": False}
    | {"bidirectional": False, "units": 13, "bridge_layers": 0}
    | {"encoder_layers": 3, "decoder_layers": 2},
    "state alone": CLASSICAL
    | {"wiring": "initial_state", "cell": "simple_rnn", "feed_output": False},
    "context, map": CLASSICAL | {"wiring": "context", "context": "map", "bridge_layers": 2},
    "context, combination": CLASSICAL
    | {"wiring": "context", "context": "combination", "cell": "simple_rnn"},
    "cho": CLASSICAL | {"context": "map", "bidirectional": False},
    "context_and_output, combination": CLASSICAL
    | {"context": "combination", "cell": "lstm", "initial_cell": "bridge", "decoder_layers": 3},
    "luong concat": LUONG | {"attention": "concat", "encoder_layers": 2, "decoder_layers": 3},
    "luong dot, fed": LUONG | SAME_DIM | {"attention": "dot", "input_feeding": True},
    "luong scaled dot": LUONG | SAME_DIM | {"attention": "scaled_dot", "cell": "lstm"},
    "luong local-m": LUONG | {"attention": "local_monotonic", "cell": "lstm"},
    "luong local-p, fed": LUONG
    | {"attention": "local_predictive", "input_feeding": True, "context": "combination"},
}
every_formula = pytest.mark.parametrize(
    "arguments", others_long(FORMULAS.values(), 6), ids=FORMULAS
)


def weights_of(model):
    """The model's weights under the reference's names."""
    encoder, decoder = model.encoder, model.decoder
    attention = getattr(decoder, "attention", None)

    def cells(layer):
        both = [getattr(layer, f"{way}_layer", None) for way in ("forward", "backward")]
        return [each.weights for each in both] if all(both) else [layer.weights]

    def weights(layer):
        return layer.weights if layer else []

    return {
        "E_x": model.source_embedding.weights,
        "E_y": weights(decoder.embedding),
        "encoder": [cells(layer) for layer in encoder.recurrent_layers],
        "context": weights(model.context_layer),
        "bridge": [list(map(list, layers)) for layers in model.bridge.maps],
        "decoder": [cell.weights for cell in decoder.cell.cells],
        "score": attention.score.weights if attention else [],
        "position": [
            getattr(attention, name)
            for name in ("position_kernel", "position_scale")
            if hasattr(attention, name)
        ],
        "attentional": weights(getattr(decoder, "attentional", None)),
        "readout": weights(decoder.readout),
        "output": decoder.output_layer.weights,
    }


def make(arguments, dtype="float32"):
    """A model with random weights."""
    options = {**SIZES, "never_generated": NEVER_GENERATED, "attention": "additive", **arguments}
    attention = options["attention"]
    if attention in LOCAL:  # a window that leaves something out
        local = LocalAttention(GeneralScore(dtype=dtype), WINDOW, LOCAL[attention], dtype=dtype)
        attention = local
    model = RNNSeq2Seq(**{**options, "attention": attention}, dtype=dtype)
    model.build()
    return randomize(model)


def call(model, inputs):
    """Logits at once and step by step, and attention weights, if there are any."""
    state, steps = model.encode(inputs["token_ids"], inputs["lengths"]), []
    for t in range(T):
        outputs, state = model.step(inputs["target_ids"][:, t : t + 1], state)
        steps.append(outputs)
    logits, *weights = [ops.concatenate(each, axis=1) for each in zip(*steps, strict=True)]
    return [*(ops.take(each, GENERATED, axis=-1) for each in (model(inputs), logits)), *weights]


def expected(model, weights, inputs, arguments):
    """The same of the reference, one source without its padding after the other."""
    options = {**model.get_config(), "attention": "additive", **arguments, "window": WINDOW}
    found = []
    for row, length in enumerate(inputs["lengths"]):
        source, target = inputs["token_ids"][row, :length], inputs["target_ids"][row]
        logits, alphas = references.seq2seq(source, target, weights, options)
        found.append([logits[:, GENERATED]] * 2)
        if options["attention"]:
            found[-1].append(np.pad(alphas, [(0, 0), (0, S - length)]))
    return [np.array(each) for each in zip(*found, strict=True)]


@every_formula
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_attention_and_gradients_are_the_papers_formula(arguments, dtype):
    assert_equals_loops(
        lambda: make(arguments, dtype),
        dtype,
        translation_inputs(),
        weights_of,
        functools.partial(expected, arguments=arguments),
        call=call,
    )


@some_models
def test_what_is_never_generated_has_no_probability(case):
    model, inputs = case.build(), case.inputs()
    assert model.never_generated == NEVER_GENERATED
    state = model.encode(inputs["token_ids"], inputs["lengths"])
    (step_logits, *_), _ = model.step(inputs["target_ids"][:, :1], state)
    probabilities = numbers(ops.softmax(step_logits))
    assert np.all(numbers(step_logits)[..., NEVER_GENERATED] == BANNED_LOGIT)
    assert np.all(probabilities[..., NEVER_GENERATED] == 0)
    assert np.all(probabilities[..., GENERATED] > 0)
    assert np.all(numbers(model(inputs)) > BANNED_LOGIT / 2)  # what a loss sees


@some_models
def test_dropout_drops_in_training_only(case):
    model, inputs = case.build(), case.inputs()
    close(model(inputs), model(inputs, training=False))
    first, second = (numbers(model(inputs, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 0.01


def test_a_config_of_the_first_release_makes_the_same_model():
    config = {**SIZES, "cell": "lstm", "dropout": 0.0, "never_generated": [0, 5], "name": "first"}
    first, now = RNNSeq2Seq.from_config(config), make({"cell": "lstm"})
    first(translation_inputs())
    first.set_weights(now.get_weights())
    close(first(translation_inputs()), now(translation_inputs()))


def refused(message, **arguments):
    with pytest.raises(ValueError, match=message):
        RNNSeq2Seq(**{**SIZES, **arguments})


@pytest.mark.parametrize("name", [*SIZES, "encoder_layers", "decoder_layers"])
def test_a_size_under_one_is_refused(name):
    refused(rf"^RNNSeq2Seq: {name} must be a positive integer; received 0\.$", **{name: 0})


@pytest.mark.parametrize(
    "name, choices",
    {
        "context": "'combination', 'last', 'map'",
        "wiring": "'context', 'context_and_output', 'initial_state'",
        "attention_place": "'after', 'before'",
        "initial_cell": "'bridge', 'zeros'",
        "attention": "'additive', 'concat', 'dot', 'general', 'hard', 'local_monotonic', "
        "'local_predictive', 'scaled_dot'",
    }.items(),
)
def test_an_unknown_name_is_refused(name, choices):
    refused(
        rf"^RNNSeq2Seq: {name} must be .*one of \[{choices}\]; received 'qrnn'\.$", **{name: "qrnn"}
    )


def test_every_unknown_name_is_named_at_once():
    refused(r"context must be .*'a'\. wiring must be .*'b'\.$", context="a", wiring="b")


@pytest.mark.parametrize(
    "message, arguments",
    [
        ("bridge_layers must be at least 0; received -1", {"bridge_layers": -1}),
        (r"ids of the target, from 0 to 18; received \[0, 19\]", {"never_generated": (0, 19)}),
        (r"ids of the target, from 0 to 18; received \[-1\]", {"never_generated": [-1]}),
        ("as wide as decoder_units; received 22 and 13", {"bridge_layers": 0}),
        ('feed_output=False goes with wiring="initial_state"', {"feed_output": False}),
        ("attention before the cell needs a wiring with", {"wiring": "initial_state"}),
        ('attention_place="after" needs an attention', LUONG | {"attention": None}),
        ("needs wiring=\"initial_state\"; received 'context'", LUONG | {"wiring": "context"}),
        ("h~ is the readout", LUONG | {"readout": False}),
        ('input_feeding needs attention_place="after"', {"input_feeding": True}),
        ("dot attention needs .* received 22 and 13", LUONG | {"attention": "dot"}),
        ("scaled_dot attention needs", {"attention": "scaled_dot"}),
        ("nothing to force", {"wiring": "context", "teacher_forcing": 0.5}),
        ("nothing to force", {"wiring": "context", "teacher_forcing": LinearDecay(1, 0.1)}),
        ("on the tokens given: teacher_forcing", {"attention": "hard", "teacher_forcing": 0.5}),
        ("entropy_weight must be at least 0", {"attention": "hard", "entropy_weight": -1}),
        ("entropy_weight needs a hard attention; received 0.1", {"entropy_weight": 0.1}),
        ("ratio must be a number from 0 to 1", {"teacher_forcing": 1.5}),
        (r"per must be one of \('token', 'batch'\)", {"teacher_forcing_per": "row"}),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(message, arguments):
    refused(message, **arguments)


@pytest.mark.parametrize(
    "message, make_attention",
    [
        (r"HardAttention or LocalAttention, or one of .*; received 3\.$", lambda: 3),
        (r"LocalAttention, or .*; received <DotScore", DotScore),
        (r"LocalAttention, or .*; received <class .*DotScore'>\.$", lambda: DotScore),
        (r"LocalAttention, or .*; received <object", object),
    ],
)
def test_an_attention_that_no_decoder_can_use_is_refused(message, make_attention):
    message = rf"^RNNSeq2Seq: attention must be None, an Attention, .*{message}"
    refused(message, attention=make_attention())


@pytest.mark.parametrize("name", sorted(SCORES))
def test_a_name_makes_its_attention(name):
    decoder = RNNSeq2Seq(**{**SIZES, "decoder_units": 22}, attention=name).decoder
    assert type(decoder.attention.score) is SCORES[name]
    if name in LOCAL:
        assert (decoder.attention.window, decoder.attention.kind) == (10, LOCAL[name])
    else:
        assert type(decoder.attention) is (HardAttention if name == "hard" else Attention)


def test_an_attention_of_the_users_refuses_sizes_that_differ_before_the_first_step():
    model = RNNSeq2Seq(**SIZES, attention=Attention(DotScore()))
    with pytest.raises(ValueError, match="DotScore: query and key must have the same dim"):
        model.build()

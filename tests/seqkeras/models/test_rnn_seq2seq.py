"""RNNSeq2Seq: the formula of every wiring, attention and context; what it refuses."""

import functools

import numpy as np
import pytest
from keras import ops

from seqkeras.attention import Attention, DotScore, GeneralScore, HardAttention, LocalAttention
from seqkeras.models import ClassicalDecoder, LuongDecoder, OwnState, RNNSeq2Seq
from seqkeras.models.rnn_parts import SCORES, parts_from_sizes
from seqkeras.schedules import LinearDecay
from tests import references
from tests.agreement import DTYPES
from tests.arrays import close, floats, numbers, randomize
from tests.catalogue import seq2seq
from tests.catalogue.case import S, T
from tests.catalogue.seq2seq import SIZES, model_of, translation_inputs
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long
from tests.refusals import refusals

some_models = pytest.mark.parametrize(
    "case",
    [seq2seq.BAHDANAU[0], seq2seq.CLASSICAL[0], seq2seq.LUONG[1]],
    ids=lambda case: case.name,
)
WINDOW = 1
NEVER_GENERATED = [0, 5]
GENERATED = np.delete(np.arange(SIZES["target_vocab_size"]), NEVER_GENERATED)
LOCAL = {"local_monotonic": "monotonic", "local_predictive": "predictive"}
CLASSICAL = {"decoder": ClassicalDecoder}
LUONG = {"decoder": LuongDecoder}
SAME_DIM = {"decoder_units": 22, "bridge_layers": 0}  # as wide as both directions of the encoder
FORMULAS = {
    "bahdanau gru": {"decoder": "bahdanau"},
    "bahdanau lstm": {"cell": "lstm"},
    "bahdanau, two layers": {"cell": "lstm", "encoder_layers": 2, "decoder_layers": 2},
    "bahdanau, only the context": {"reads_output": False, "attention": "general"},
    "bahdanau, local": {"attention": "local_monotonic", "cell_states": True, "cell": "lstm"},
    "sutskever": {"decoder": "sutskever", "units": 13, "encoder_layers": 3, "decoder_layers": 2},
    "bahdanau, no readout": {"readout": False},
    "no readout": CLASSICAL | {"readout": False, "reads_context": True},
    "reversed": {"decoder": "sutskever", "units": 13, "reverse_source": True}
    | {"encoder_layers": 2, "decoder_layers": 2},
    "reversed, local": LUONG | {"attention": "local_monotonic", "reverse_source": True},
    "state alone": CLASSICAL | {"cell": "simple_rnn", "reads_output": False},
    "context, map": CLASSICAL
    | {"reads_context": True, "reads_output": False, "context": "map", "bridge_layers": 2},
    "context, combination": CLASSICAL
    | {"reads_context": True, "reads_output": False, "context": "combination"}
    | {"cell": "simple_rnn"},
    "cho": {"decoder": "cho"},
    "context_and_output, combination": CLASSICAL
    | {"reads_context": True, "context": "combination", "cell": "lstm", "cell_states": True}
    | {"decoder_layers": 3},
    "first classical": {"decoder": "classical_first_state", "units": 13, "cell": "lstm"},
    "second classical": {"decoder": "classical_context"},
    "second classical, learned": {"decoder": "classical_context", "first_state": "learned"}
    | {"cell": "lstm", "cell_states": True, "decoder_layers": 2, "context": "combination"},
    "third classical": {"decoder": "classical_context_and_output", "cell": "lstm"},
    "third classical, learned": {"decoder": "classical_context_and_output"}
    | {"first_state": "learned", "cell": "lstm"},
    "luong": {"decoder": "luong", "units": 13, "encoder_layers": 2, "decoder_layers": 2},
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
        "bridge": first_states_of(model.bridge),
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


def first_states_of(bridge):
    """For each state its layers, or the state itself."""
    if isinstance(bridge, OwnState):
        return list(bridge.weights)
    return [list(map(list, layers)) for layers in bridge.maps]


def options_of(model, attention=None):
    """What the parts do, by the names of the reference; `attention` is its name, if any."""
    decoder, bridge = model.decoder, model.bridge
    own = {True: "learned", False: "zeros"}
    return {
        "cell": decoder.get_config()["cell"],
        "context": model.context,
        "first_state": own[bridge.learned] if isinstance(bridge, OwnState) else "bridge",
        "cell_states": bridge.cell_states,
        "decoder_units": decoder.units,
        "decoder_layers": len(decoder.recurrent_names),
        "reads_context": getattr(decoder, "reads_context", False),
        "attention": attention,
        "attention_place": "after" if isinstance(decoder, LuongDecoder) else "before",
        "input_feeding": getattr(decoder, "input_feeding", False),
        "window": WINDOW,
        "reverse_source": model.reverse_source,
    }


def make(arguments, dtype="float32"):
    """A model with random weights."""
    options = {"never_generated": NEVER_GENERATED, **arguments}
    attention = options.get("attention")
    if attention in LOCAL:  # a window that leaves something out
        local = LocalAttention(GeneralScore(dtype=dtype), WINDOW, LOCAL[attention], dtype=dtype)
        options["attention"] = local
    model = model_of(**options, dtype=dtype)
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
    attention = None
    if model.attends:
        default = "general" if arguments.get("decoder") == "luong" else "additive"
        attention = arguments.get("attention", default)
    options = options_of(model, attention)
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
def test_dropout_drops_in_training_only(case):
    model, inputs = case.build(), case.inputs()
    close(model(inputs), model(inputs, training=False))
    first, second = (numbers(model(inputs, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 0.01


def test_tied_weights_are_the_embeddings_in_the_place_of_the_output_layer():
    sizes = {"embedding_dim": 7, "decoder_units": 7}  # so that the hidden layer is as wide
    tied, untied = make(sizes | {"tie_weights": True}), make(sizes)
    own, output = untied.decoder.output_layer.weights, [*tied.weights]
    place = next(i for i, variable in enumerate(untied.weights) if variable is own[0])
    rows = tied.decoder.embedding.embeddings
    output[place:place] = [ops.transpose(rows), ops.zeros(rows.shape[:1])]
    untied.set_weights(output)
    inputs = translation_inputs()
    for found, expected in zip(call(tied, inputs), call(untied, inputs), strict=True):
        close(found, expected)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_a_name_makes_its_attention(name):
    decoder = model_of(decoder_units=22, attention=name).decoder
    assert type(decoder.attention.score) is SCORES[name]
    if name in LOCAL:
        assert (decoder.attention.window, decoder.attention.kind) == (10, LOCAL[name])
    else:
        assert type(decoder.attention) is (HardAttention if name == "hard" else Attention)


def of(**arguments):
    return lambda: model_of(**arguments)


BLIND = {"reads_output": False}
PARTS = parts_from_sizes(ClassicalDecoder, **SIZES)
ATTENTION = "BahdanauDecoder: attention must be an Attention, ..."
test_arguments_that_do_not_go_together_are_refused = refusals(
    (of(units=0), "must be a positive integer...0"),
    (of(decoder_layers=0), "must be a positive integer...0"),
    (of(context="q"), "context must be one of ['combination', 'last', 'map']; received 'q'."),
    (of(first_state="q"), "first_state must be ...'bridge', 'zeros', 'learned'...; received 'q'."),
    (of(attention="q"), "attention must be ...'additive', 'concat', 'dot', 'general', 'hard', 'lo"),
    (
        lambda: RNNSeq2Seq(100, 120, OwnState(7), context=3),
        "RNNSeq2Seq: encoder must be a RecurrentStack; received 100. decoder must be a "
        "ClassicalDecoder, ...; received 120. ...presets... context must be ...; received 3.",
    ),
    (of(bridge_layers=-1), "Bridge: num_layers must be an integer, at least 0; received -1"),
    (of(never_generated=(0, 19)), "ids of the target, from 0 to 18; received [0, 19]"),
    (of(never_generated=[-1]), "ids of the target, from 0 to 18; received [-1]"),
    (of(bridge_layers=0), "as wide as the decoder's; received 22 and 13"),
    (of(**LUONG, attention="dot"), "RNNSeq2Seq: DotScore needs ... received 22 and 13"),
    (of(attention="scaled_dot"), "RNNSeq2Seq: ScaledDotScore needs"),
    (of(attention=Attention(DotScore())), "RNNSeq2Seq: DotScore needs the encoder's"),
    (of(**CLASSICAL, **BLIND, teacher_forcing=0.5), "nothing to force"),
    (of(**BLIND, teacher_forcing=LinearDecay(1, 0.1)), "nothing to force"),
    (of(attention="hard", teacher_forcing=0.5), "on the tokens given: teacher_forcing"),
    (of(attention="hard", entropy_weight=-1), "entropy_weight must be at least 0"),
    (of(entropy_weight=0.1), "entropy_weight needs a HardAttention; received 0.1"),
    (of(teacher_forcing=1.5), "ratio must be a number from 0 to 1"),
    (of(tie_weights=True, readout=False), "tie_weights needs embeddings that are fed"),
    (of(**CLASSICAL, **BLIND, tie_weights=True), "tie_weights needs ... received None and"),
    (of(teacher_forcing_per="row"), "per must be one of ('token', 'batch')"),
    (
        lambda: RNNSeq2Seq(**PARTS | {"bridge": OwnState(7)}),
        "RNNSeq2Seq: bridge must have the decoder's units; received 7 and 13",
    ),
    (
        lambda: ClassicalDecoder(19, 7, 13, reads_context=True)(
            np.ones((2, 3), int), floats(2, 5, 11), [floats(2, 13)]
        ),
        "ClassicalDecoder: context must be given where reads_c",
    ),
    (of(attention=3), f"{ATTENTION}HardAttention or LocalAttention; received 3."),
    (of(attention=DotScore()), f"{ATTENTION}LocalAttention; received <DotScore"),
    (of(attention=DotScore), f"{ATTENTION}LocalAttention; received <class ...DotScore'>."),
)

"""Every argument of Keras's recurrent layers, one by one: ours mean the same by it."""

import inspect

import keras
import pytest

from seqkeras.recurrent import GRU, LSTM, QRNN, Bidirectional
from tests.arrays import BACKEND, close, floats, randomize
from tests.catalogue.case import B, D, S, U
from tests.conftest import others_long
from tests.refusals import refusals
from tests.seqkeras.recurrent.rivals import (
    LAYERS,
    MASKS,
    assert_same,
    every_layer,
    every_mask,
    results_and_gradients,
    states,
)

L2, NORM = keras.regularizers.L2(0.25), keras.constraints.MaxNorm(0.75, axis=0)
CONSTANT = keras.initializers.Constant
# Name of the argument -> a value that is not the default.
ARGUMENTS = {
    "activation": "relu",
    "use_bias": False,
    "kernel_initializer": CONSTANT(0.2),
    "recurrent_initializer": CONSTANT(0.3),
    "bias_initializer": CONSTANT(0.4),
    "kernel_regularizer": L2,
    "recurrent_regularizer": L2,
    "bias_regularizer": L2,
    "activity_regularizer": L2,
    "kernel_constraint": NORM,
    "recurrent_constraint": NORM,
    "bias_constraint": keras.constraints.NonNeg(),
    "dropout": 0.3,
    "recurrent_dropout": 0.2,
    "seed": 7,
    "return_sequences": True,
    "return_state": True,
    "go_backwards": True,
    "stateful": True,
    "unroll": True,
}
GATED = ARGUMENTS | {"recurrent_activation": "hard_sigmoid", "use_cudnn": False}
OWN = {
    "LSTM": GATED | {"unit_forget_bias": False},
    "GRU": GATED | {"reset_after": False},
    "SimpleRNN": ARGUMENTS,
}
DRAWN = {"kernel_initializer": ["kernel"], "recurrent_initializer": ["recurrent_kernel"]}
CASES = [(name, argument) for name, own in OWN.items() for argument in own]
every_argument = pytest.mark.parametrize(
    "name, argument", others_long(CASES, len(OWN["LSTM"])), ids=map("-".join, CASES)
)


def pair(name, **options):
    """Our layer and Keras's of one constructor, built."""
    layer_class, _, keras_class, _ = LAYERS[name]
    layers = layer_class(U, **options), keras_class(U, **options)
    for layer in layers:
        layer.build((B, S, D))
    # Which Keras's SimpleRNN takes, and leaves out.
    layers[1].activity_regularizer = options.get("activity_regularizer")
    return layers


@every_layer
def test_no_argument_is_missing(name):
    known = inspect.signature(LAYERS[name][2].__init__).parameters.keys()
    assert OWN[name].keys() == known - {"self", "units", "kwargs"}


@every_argument
def test_weights_copied_both_ways_give_the_numbers_of_keras(name, argument):
    ours, theirs = pair(name, **{argument: OWN[name][argument]})
    theirs.zero_output_for_mask = theirs.return_sequences
    for source, target in ((ours, theirs), (theirs, ours)):
        target.set_weights(randomize(source).get_weights())
        for layer in (ours, theirs) if argument == "stateful" else ():
            layer.reset_state()
        sequences, mask = floats(B, S, D), MASKS["right-padded"]
        close(ours(sequences, mask=mask), theirs(sequences, mask=mask))
        close(sum(ours.losses), sum(theirs.losses))


@pytest.mark.parametrize("mask", others_long(["holes and an empty row", "no mask", "left-padded"]))
@pytest.mark.parametrize(
    "name, options",
    [
        ("SimpleRNN", {"activation": "relu", "use_bias": False}),
        ("LSTM", {"activation": "softsign", "recurrent_activation": "hard_sigmoid"}),
        ("LSTM", {"use_bias": False, "go_backwards": True}),
        ("GRU", {"reset_after": False, "use_bias": False}),
        ("GRU", {"reset_after": False, "go_backwards": True, "unroll": True}),
        ("GRU", {"activation": None, "recurrent_activation": "relu"}),
    ],
)
def test_outputs_and_gradients_on_the_general_path_are_those_of_keras(name, options, mask):
    ours, theirs = pair(name, **options, return_sequences=True, return_state=True)
    theirs.zero_output_for_mask = True
    theirs.set_weights(randomize(ours).get_weights())
    given = floats(B, S, D), states(LAYERS[name][3]), MASKS[mask]
    assert_same(*(results_and_gradients(each, *given) for each in (ours, theirs)), 1e-5)


@every_argument
def test_weights_begin_are_bound_and_are_held_as_keras_s(name, argument):
    ours, theirs = pair(name, **{argument: OWN[name][argument]})
    assert [each.shape for each in ours.weights] == [each.shape for each in theirs.weights]
    for one, other in zip(ours.trainable_weights, theirs.trainable_weights, strict=True):
        for kind in ("regularizer", "constraint"):
            serialize = keras.saving.serialize_keras_object
            assert serialize(getattr(one, kind)) == serialize(getattr(other, kind))
        if one.name == "bias" or one.name in DRAWN.get(argument, ()):
            close(one, other)


@pytest.mark.parametrize("flags", [{}, {"go_backwards": True}], ids=["forwards", "backwards"])
@every_layer
@every_mask
def test_a_layer_of_keras_s_own_config_gives_its_numbers_under_any_mask(name, mask, flags):
    layer_class, _, keras_class, _ = LAYERS[name]
    theirs = keras_class(U, return_sequences=True, return_state=True, **flags)
    ours = layer_class.from_config(theirs.get_config())
    for layer in (ours, theirs):
        layer.build((B, S, D))
    ours.set_weights(randomize(theirs).get_weights())
    # Before the first real step Keras on JAX repeats the initial state, and elsewhere zeros.
    initial = None if BACKEND == "jax" else states(LAYERS[name][3])
    given = floats(B, S, D), initial, mask
    assert_same(*(results_and_gradients(layer, *given) for layer in (ours, theirs)), 1e-5)


@pytest.mark.parametrize("implementation", [1, 2])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_either_implementation_of_keras_s_gives_the_numbers_of_ours(name, implementation):
    ours, theirs = pair(name, implementation=implementation, return_sequences=True)
    theirs.set_weights(randomize(ours).get_weights())
    close(ours(floats(B, S, D)), theirs(floats(B, S, D)))
    assert ours.get_config()["implementation"] == implementation
    keras_s_cell = getattr(keras.layers, f"{name}Cell")(U, implementation=implementation)
    assert type(ours.cell).from_config(keras_s_cell.get_config()).units == U


@pytest.mark.parametrize("merge_mode", ["concat", "sum", "mul", "ave", None])
@pytest.mark.parametrize("return_state", others_long([True, False]))
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("activation", others_long(["relu", "tanh"]))
def test_both_ways_merge_as_in_keras(merge_mode, return_state, return_sequences, activation):
    flags = {"return_sequences": return_sequences, "return_state": return_state}
    ours = Bidirectional(GRU(U, activation, **flags), merge_mode)
    theirs = keras.layers.Bidirectional(keras.layers.GRU(U, activation, **flags), merge_mode)
    for layer in (ours, theirs):
        layer.build((B, S, D))
    theirs.set_weights(randomize(ours).get_weights())
    given = {"mask": MASKS["right-padded"]}
    found, expected = ours(floats(B, S, D), **given), theirs(floats(B, S, D), **given)
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    close(found, expected)
    shapes = ours.compute_output_shape((B, S, D))
    found = found if isinstance(found, tuple) else [found]
    shapes = shapes if isinstance(shapes[0], tuple) else [shapes]
    assert [tuple(each) for each in shapes] == [tuple(each.shape) for each in found]


@pytest.mark.parametrize(
    "make",
    [
        lambda lstm, gru: (lstm(U), gru(U, go_backwards=True)),
        lambda lstm, gru: (gru(U), gru(U, go_backwards=True, use_bias=False)),
    ],
    ids=["LSTM and GRU", "two GRUs"],
)
def test_a_backward_layer_of_its_own_is_that_of_keras(make):
    layer, backward = make(LSTM, GRU)
    ours = Bidirectional(layer, backward_layer=backward)
    layer, backward = make(keras.layers.LSTM, keras.layers.GRU)
    theirs = keras.layers.Bidirectional(layer, backward_layer=backward)
    for each in (ours, theirs):
        each.build((B, S, D))
    theirs.set_weights(randomize(ours).get_weights())
    given = {"mask": MASKS["right-padded"]}
    close(ours(floats(B, S, D), **given), theirs(floats(B, S, D), **given))


test_what_contradicts_is_refused_by_name = refusals(
    (lambda: GRU(U, implementation=0), "GRUCell: implementation must be 1 or 2; received 0"),
    (lambda: LSTM(U, use_cudnn="no"), 'LSTMCell: use_cudnn must be "auto", True or False; '),
    (lambda: Bidirectional(GRU(U), "max"), "merge_mode must be one of ['concat', ..."),
    (
        lambda: Bidirectional(GRU(U), backward_layer=GRU(U)),
        "Bidirectional: backward_layer must be a recurrent layer with go_backwards=True; ",
    ),
    (
        lambda: Bidirectional(GRU(U), "sum", QRNN(U, return_sequences=True, go_backwards=True)),
        "Bidirectional: backward_layer must have the layer's return_sequences, False; rec",
    ),
    (lambda: GRU(U, weights=[]), "weights"),
)

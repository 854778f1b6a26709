import numpy as np
import pytest
from keras import ops

from seqkeras.models import BiLM, LayerMix
from seqkeras.models.bilm import ProjectedLSTM
from tests import vectors
from tests.agreement import DTYPES
from tests.arrays import close, floats, numbers, randomize
from tests.autodiff import gradients_of
from tests.catalogue import models
from tests.complex_step import assert_equals_loops
from tests.references.language_models import bilm, layer_mix
from tests.refusals import refusals

CASE, BOUNDED = models.BILM
SIZES = {
    "vocab_size": 19,
    "character_vocab_size": 17,
    "character_dim": 5,
    "widths": [1, 2],
    "filters": [7, 3],
    "units": 13,
    "projection_dim": 11,
}


def weights_of(model):
    """The model's weights as the reference names them."""
    return {
        "characters": model.character_cnn.weights,
        "highways": [(each.transform.weights, each.gate.weights) for each in model.highways],
        "projection": model.projection.weights,
        "forward": [layer.weights for layer in model.forward_layers],
        "backward": [layer.weights for layer in model.backward_layers],
        "output": model.output_layer.weights,
    }


def expected(model, weights, inputs):
    activation = model.character_cnn.activation
    forward, backward, represented = bilm(**inputs, activation=activation, weights=weights)
    logits = {"forward_logits": forward, "backward_logits": backward}
    return logits | {"represented": represented}


def logits_and_layers(model, inputs):
    return model(inputs) | {"represented": model.represent(inputs)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_representations_and_gradients_are_the_papers_formula(dtype):
    given = CASE.inputs(), weights_of, expected
    assert_equals_loops(CASE.build, dtype, *given, call=logits_and_layers)


def test_dropout_drops_in_training_only():
    model, inputs = CASE.build(), CASE.inputs()
    close(model(inputs), model(inputs, training=False))
    for name, logits in numbers(model(inputs, training=True)).items():
        assert np.abs(logits - numbers(model(inputs))[name]).max() > 0.01
    dropped = numbers(model.represent(inputs, training=True))
    assert np.abs(dropped - numbers(model.represent(inputs))).max() > 0.01


def test_boundaries_are_read_around_each_row_and_left_out_of_its_layers():
    inputs = CASE.inputs()
    model, plain = BOUNDED.build(), CASE.build()
    plain.set_weights(model.get_weights())
    close(model(inputs), plain(inputs))  # what is trained has them among its words
    layers = numbers(model.represent(inputs))
    for row, length in enumerate(models.LENGTHS):
        words = inputs["character_ids"][row, :length]
        alone = np.zeros((1, length + 2, words.shape[1]), int)
        alone[0, 1:-1], alone[0, 0, 0], alone[0, -1, 0] = words, 2, 3
        between = numbers(plain.represent({"character_ids": alone}))[0, :, 1:-1]
        close(layers[row, :, :length], between)
    whole = {"character_ids": inputs["character_ids"][:1]}
    close(model.represent(whole), layers[:1])


def test_the_forget_gate_of_a_projected_lstm_begins_open():
    layer = ProjectedLSTM(3, 2)
    layer.build((None, None, 5))
    close(layer.bias, np.repeat([0.0, 1.0, 0.0, 0.0], 3))


def test_a_projected_lstm_and_its_gradients_are_what_torch_says():
    stored = vectors.load("models")
    names = ["kernel", "recurrent_kernel", "bias", "projection"]
    values = [stored[f"projected_lstm/{name}"] for name in ["sequences", *names]]
    units, dim = stored["projected_lstm/projection"].shape

    def outputs_of(values):
        layer = ProjectedLSTM(units, dim)
        for name, value in zip(names, values[1:]):
            setattr(layer, name, value)
        layer.built = True
        return layer(values[0])

    outputs = outputs_of([ops.convert_to_tensor(each) for each in values])
    close(outputs, stored["projected_lstm/outputs"])
    actual = gradients_of(lambda values: ops.sum(ops.sin(outputs_of(values))), values)
    close(actual, [stored[f"projected_lstm/gradient/{name}"] for name in ["sequences", *names]])


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_mix_of_layers_and_its_gradients_are_the_papers_formula(layer_norm, dtype):
    inputs = {"layers": floats(2, 3, 5, 7)}

    def make():
        mix = LayerMix(layer_norm)
        mix.build(inputs["layers"].shape)
        return randomize(mix)

    def reference(mix, weights, inputs):
        return layer_mix(inputs["layers"], *weights, layer_norm)

    assert_equals_loops(make, dtype, inputs, lambda mix: mix.weights, reference)


def test_a_new_mix_is_the_mean_of_the_layers():
    layers = floats(2, 3, 5, 7)
    close(LayerMix()(layers), layers.mean(axis=1))


def test_the_penalty_of_a_mix_is_the_square_of_its_scores():
    mix = LayerMix(l2=0.1)
    mix.build((None, 3, None, 7))
    randomize(mix)
    close(sum(mix.losses), 0.1 * np.sum(mix.get_weights()[0] ** 2))


def built(layer):
    layer(floats(2, 3, 7))
    return layer


IDS = "BiLM: boundary_ids must be two ids from 1 to 16; rec"
test_what_does_not_fit_is_refused = refusals(
    *((lambda ids=ids: BiLM(**SIZES, boundary_ids=ids), IDS) for ids in ([2], [0, 3], [2, 17])),
    (
        lambda: BiLM(**SIZES)(CASE.inputs() | {"lengths": np.array([2])}),
        "ProjectedLSTM: mask must have the shape",
    ),
    (lambda: built(ProjectedLSTM(5, 3))(floats(2, 7)), "ProjectedLSTM: sequences must have shape"),
    (lambda: LayerMix().build((2, 5, 7)), "LayerMix: layers must have shape (batch, layers, lengt"),
)

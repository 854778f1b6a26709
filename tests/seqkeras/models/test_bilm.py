import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.models import BiLM, LayerMix
from seqkeras.models.bilm import ProjectedLSTM
from tests import vectors
from tests.arrays import close, floats, needs_tensorflow, numbers, randomize, right_padded
from tests.autodiff import gradients_of
from tests.catalogue import models
from tests.catalogue.case import S
from tests.references.embeddings import character_cnn, highway
from tests.references.language_models import bilm_direction, layer_mix, projected_lstm
from tests.seqkeras.models.support import losses_by_heart, needs_float64

[CASE] = models.BILM
REAL = right_padded(models.LENGTHS, S)
SIZES = {
    "vocab_size": 19,
    "character_vocab_size": 17,
    "character_dim": 5,
    "widths": [1, 2],
    "filters": [7, 3],
    "units": 13,
    "projection_dim": 11,
}


def expected_layers(model, character_ids, lengths):
    """x, and the layers of both directions."""

    def weights(layer):
        return [each.astype("float64") for each in layer.get_weights()]

    table, *convolutions = weights(model.character_cnn)
    pairs = list(zip(convolutions[::2], convolutions[1::2], strict=True))
    x = character_cnn(character_ids, table, pairs, model.character_cnn.activation)
    for layer in model.highways:
        x = highway(x, weights(layer.transform), weights(layer.gate), lambda x: np.maximum(x, 0))
    kernel, bias = weights(model.projection)
    x = x @ kernel + bias
    mask = right_padded(lengths, character_ids.shape[1])
    forward, backward = (
        bilm_direction(x, mask, [weights(layer) for layer in layers], reverse)
        for layers, reverse in ((model.forward_layers, False), (model.backward_layers, True))
    )
    return x, forward, backward


def check_the_formula(model, inputs, **tolerance):
    logits, represented = numbers(model(inputs)), numbers(model.represent(inputs))
    x, forward, backward = expected_layers(model, **inputs)
    kernel, bias = model.output_layer.get_weights()
    for name, layers in (("forward_logits", forward), ("backward_logits", backward)):
        close(logits[name][REAL], (layers[-1] @ kernel + bias)[REAL], **tolerance)
    pairs = zip([x, *forward], [x, *backward], strict=True)
    for j, pair in enumerate(pairs):
        close(represented[:, j][REAL], np.concatenate(pair, axis=-1)[REAL], **tolerance)


def test_logits_and_representations_are_the_papers_formula():
    check_the_formula(CASE.build(), CASE.inputs(), atol=1e-5)


@needs_float64
def test_a_float64_model_is_the_papers_formula_to_nine_digits():
    model = BiLM(**SIZES, dtype="float64")
    model(CASE.inputs())
    check_the_formula(randomize(model), CASE.inputs(), rtol=1e-9, atol=1e-12)


def test_without_lengths_every_word_is_real():
    model, inputs = CASE.build(), CASE.inputs()
    only = {"character_ids": inputs["character_ids"]}
    close(model(only), model(only | {"lengths": np.array([S, S])}))


def test_no_direction_sees_the_words_that_it_predicts():
    model, inputs = CASE.build(), CASE.inputs()
    inputs = {"character_ids": inputs["character_ids"], "lengths": np.array([S, S])}
    whole = numbers(model(inputs))
    for t in range(S):
        changed = np.array(inputs["character_ids"])
        changed[:, t] = (changed[:, t] + 7) % 16 + 1
        logits = numbers(model(inputs | {"character_ids": changed}))
        forward, backward = (
            np.abs(logits[name] - whole[name]).max(axis=(0, 2)) > 1e-6
            for name in ("forward_logits", "backward_logits")
        )
        assert forward.tolist() == [each >= t for each in range(S)]
        assert backward.tolist() == [each <= t for each in range(S)]


def test_the_padding_of_words_does_not_change_the_output():
    model, inputs = CASE.build(), CASE.inputs()
    wider = np.pad(inputs["character_ids"], [(0, 0), (0, 0), (0, 4)])
    close(model(inputs | {"character_ids": wider}), model(inputs))


def test_dropout_drops_in_training_only():
    model, inputs = CASE.build(), CASE.inputs()
    close(model(inputs), model(inputs, training=False))
    for name, logits in numbers(model(inputs, training=True)).items():
        assert np.abs(logits - numbers(model(inputs))[name]).max() > 0.01
    dropped = numbers(model.represent(inputs, training=True))
    assert np.abs(dropped - numbers(model.represent(inputs))).max() > 0.01


@pytest.mark.parametrize("name", ["vocab_size", "units", "projection_dim"])
def test_a_size_under_one_is_refused(name):
    message = rf"^BiLM: every size must be at least 1; received .*'{name}': 0"
    with pytest.raises(ValueError, match=message):
        BiLM(**SIZES | {name: 0})


@needs_tensorflow
def test_both_directions_learn_a_batch_by_heart():
    keras.utils.set_random_seed(0)
    word_ids = models.ids(19, S)
    word_ids[1, 3:] = 0
    characters = np.stack([word_ids % 4, word_ids // 4], axis=-1) + 1
    inputs = {"character_ids": characters, "lengths": models.LENGTHS}
    targets = {
        "forward_logits": np.pad(word_ids[:, 1:], [(0, 0), (0, 1)]),
        "backward_logits": np.pad(word_ids[:, :-1], [(0, 0), (1, 0)]) * REAL,
    }
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    losses = {"forward_logits": loss, "backward_logits": loss}
    model = BiLM(**SIZES, num_layers=1)
    first, last = losses_by_heart(model, inputs, targets, losses, 50, 0.05)
    assert first > 4 and last < 0.05


@pytest.mark.parametrize("reverse", [False, True])
def test_a_projected_lstm_is_the_papers_formula(reverse):
    layer, x = ProjectedLSTM(13, 5, go_backwards=reverse), floats(2, S, 7)
    layer.build(x.shape)
    weights = randomize(layer).get_weights()
    actual = numbers(layer(x, mask=REAL))
    assert np.all(actual[~REAL] == 0)
    close(actual, projected_lstm(x, REAL, weights, reverse))


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
def test_a_mix_of_layers_is_the_papers_formula(layer_norm):
    mix, layers = LayerMix(layer_norm), floats(2, 3, 5, 7)
    mix.build(layers.shape)
    scores, gamma = randomize(mix).get_weights()
    expected = layer_mix(layers.astype("float64"), scores, gamma, layer_norm)
    close(mix(layers), expected, rtol=1e-4, atol=1e-5)


def test_a_new_mix_is_the_mean_of_the_layers():
    layers = floats(2, 3, 5, 7)
    close(LayerMix()(layers), layers.mean(axis=1))


def test_the_penalty_of_a_mix_is_the_square_of_its_scores():
    mix = LayerMix(l2=0.1)
    mix.build((None, 3, None, 7))
    randomize(mix)
    close(sum(mix.losses), 0.1 * np.sum(mix.get_weights()[0] ** 2))


def test_layers_that_are_not_counted_are_refused():
    message = r"^LayerMix: layers must have shape \(batch, layers, length, dim\); .* 5, 7\)"
    with pytest.raises(ValueError, match=message):
        LayerMix().build((2, 5, 7))

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.models import RNNSeq2Seq
from seqkeras.models.rnn_seq2seq import NEVER
from tests import references
from tests.arrays import close, gradients, numbers
from tests.catalogue import seq2seq
from tests.catalogue.case import B, T

SIZES = {
    "source_vocab_size": 17,
    "target_vocab_size": 19,
    "embedding_dim": 7,
    "units": 11,
    "decoder_units": 13,
}
every_model = pytest.mark.parametrize("case", seq2seq.CASES, ids=lambda case: case.name)


def weights_of(model):
    """The model's weights under the paper's names, in float64."""
    layers = {
        "E_x": model.source_embedding,
        "E_y": model.target_embedding,
        "forward": model.encoder.forward_layer,
        "backward": model.encoder.backward_layer,
        "bridge": model.bridge,
        "score": model.attention.score,
        "decoder": model.decoder_cell,
        "readout": model.readout,
        "output": model.output_layer,
    }
    weights = {
        name: [each.astype("float64") for each in layer.get_weights()]
        for name, layer in layers.items()
    }
    W_a, U_a, v_a = weights.pop("score")
    [E_x], [E_y] = weights["E_x"], weights["E_y"]
    return weights | {"E_x": E_x, "E_y": E_y, "W_a": W_a, "U_a": U_a, "v_a": v_a[:, 0]}


@every_model
def test_logits_and_attention_are_the_papers_formula(case):
    model, inputs = case.build(), case.inputs()
    weights, cell = weights_of(model), model.cell_name
    logits = numbers(model(inputs))
    state = model.encode(inputs["token_ids"], inputs["lengths"])
    for t in range(T):
        (_, attention), state = model.step(inputs["target_ids"][:, t : t + 1], state)
        attention = numbers(attention)
        for row, length in enumerate(inputs["lengths"]):
            h, states = references.bahdanau_encoder(
                inputs["token_ids"][row, :length], weights, cell
            )
            for token in inputs["target_ids"][row, : t + 1]:
                expected, alpha, states = references.bahdanau_decoder_step(
                    token, states, h, weights, cell
                )
            expected[model.never_generated] = NEVER
            close(logits[row, t], expected, rtol=1e-4, atol=1e-5)
            close(attention[row, 0, :length], alpha, rtol=1e-4)
            assert np.all(attention[row, 0, length:] == 0)


@every_model
def test_what_is_never_generated_has_no_probability(case):
    model, inputs = case.build(), case.inputs()
    assert model.never_generated == [0, 5]
    logits = numbers(model(inputs))
    probabilities = numbers(ops.softmax(logits))
    assert np.all(logits[..., [0, 5]] == NEVER)
    assert np.all(probabilities[..., [0, 5]] == 0)
    assert np.all(np.delete(probabilities, [0, 5], axis=-1) > 0)


@every_model
def test_every_weight_learns(case):
    model, inputs = case.build(), case.inputs()
    targets = np.random.default_rng(1).integers(6, 19, (B, T))

    def loss(each):
        return ops.mean(
            keras.losses.sparse_categorical_crossentropy(targets, each(inputs), from_logits=True)
        )

    for weight, gradient in zip(model.trainable_weights, gradients(model, loss), strict=True):
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(gradient), weight.path


@every_model
def test_dropout_drops_in_training_only(case):
    model, inputs = case.build(), case.inputs()
    close(model(inputs), model(inputs, training=False))
    first, second = (numbers(model(inputs, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 0.01


@pytest.mark.parametrize("name", SIZES)
def test_a_size_under_one_is_refused(name):
    message = rf"^RNNSeq2Seq: every size must be at least 1; received .*'{name}': 0"
    with pytest.raises(ValueError, match=message):
        RNNSeq2Seq(**{**SIZES, name: 0})


def test_an_unknown_cell_is_refused():
    message = r"^RNNSeq2Seq: cell must be one of \['gru', 'lstm'\]; received 'qrnn'\.$"
    with pytest.raises(ValueError, match=message):
        RNNSeq2Seq(**SIZES, cell="qrnn")

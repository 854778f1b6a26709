"""Scheduled sampling: what the decoder reads in training, and when."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.models import ClassicalDecoder, LuongDecoder
from seqkeras.models.teacher_forcing import TeacherForcing
from seqkeras.schedules import InverseSigmoidDecay, LinearDecay
from seqkeras.values import BANNED_LOGIT
from tests.arrays import BACKEND, close, floats, gradients, numbers, randomize
from tests.catalogue.case import B, T
from tests.catalogue.seq2seq import SIZES, model_of, translation_inputs

DECODERS = {
    "classical": {
        "decoder": ClassicalDecoder,
        "reads_context": True,
        "cell": "lstm",
        "decoder_layers": 2,
    },
    "bahdanau": {},
    "luong": {"decoder": LuongDecoder, "attention": "local_monotonic", "input_feeding": True},
}
every_decoder = pytest.mark.parametrize("arguments", DECODERS.values(), ids=DECODERS)
GIVEN = np.array([[1, 0, 1], [1, 1, 0]], bool)


def make(arguments, teacher_forcing, **options):
    model = model_of(**arguments, teacher_forcing=teacher_forcing, **options)
    model(translation_inputs())
    return randomize(model)


def step_by_step(model, given):
    """Logits (B, T, V) where a step reads the target if given, else its own likeliest token."""
    inputs = translation_inputs()
    state = model.encode(inputs["token_ids"], inputs["lengths"])
    logits = []
    for t in range(T):
        token = inputs["target_ids"][:, t : t + 1]
        if t:
            token = np.where(given[:, t : t + 1], token, logits[-1].argmax(axis=-1))
        (now, *_), state = model.step(token, state)
        logits.append(numbers(now))
    return np.concatenate(logits, axis=1)


def generated(logits):
    """As a step has them: what is never generated can not be chosen."""
    logits = numbers(logits).copy()
    logits[..., :3] = BANNED_LOGIT
    return logits


@every_decoder
def test_each_step_of_each_row_reads_what_its_draw_says(arguments, monkeypatch):
    model = make(arguments, 0.5)
    monkeypatch.setattr(TeacherForcing, "call", lambda self, ids: ops.convert_to_tensor(GIVEN))
    logits = generated(model(translation_inputs(), training=True))
    close(logits, step_by_step(model, GIVEN), atol=1e-5)


@every_decoder
def test_gradients_are_those_of_the_tokens_that_were_read(arguments, monkeypatch):
    model = make(arguments, 0.5)
    predicted = step_by_step(model, GIVEN).argmax(axis=-1)
    inputs = translation_inputs()
    read = inputs["target_ids"].copy()
    read[:, 1:] = np.where(GIVEN, read, np.roll(predicted, 1, axis=1))[:, 1:]
    monkeypatch.setattr(TeacherForcing, "call", lambda self, ids: ops.convert_to_tensor(GIVEN))
    slopes = ops.convert_to_tensor(floats(B, T, SIZES["target_vocab_size"]))

    def loss(inputs, training):
        return lambda model: ops.sum(model(inputs, training=training) * slopes)

    expected = gradients(model, loss(inputs | {"target_ids": read}, training=False))
    actual = gradients(model, loss(inputs, training=True))
    largest = max(np.abs(each).max() for each in expected)
    close(actual, expected, rtol=0, atol=1e-5 * largest)


def test_a_draw_for_each_token():
    forcing = TeacherForcing(0.3, per="token")
    given = numbers(forcing(np.zeros((83, 71), "int64")))
    assert np.all(given[:, 0])
    assert abs(given[:, 1:].mean() - 0.3) < 0.03
    for axis in (0, 1):  # no row and no step of all rows shares a draw
        shares = given[:, 1:].mean(axis=axis)
        assert 0.05 < shares.min() < shares.max() < 0.65


def test_a_draw_for_each_batch():
    forcing = TeacherForcing(0.3, per="batch")
    shares = []
    for _ in range(200):
        given = numbers(forcing(np.zeros((3, 5), "int64")))
        assert np.all(given[:, 0])
        shares.append(given[:, 1:].mean())
    assert set(shares) == {0.0, 1.0}
    assert abs(np.mean(shares) - 0.3) < 0.1


def test_the_ratio_falls_with_the_training_steps():
    forcing = TeacherForcing(LinearDecay(1.0, 0.5))
    shares = [numbers(forcing(np.zeros((2, 101), "int64")))[:, 1:].mean() for _ in range(4)]
    assert shares[0] == 1 and 0.3 < shares[1] < 0.7 and shares[2:] == [0, 0]


def fitted():
    model = make({"dropout": 0.1}, InverseSigmoidDecay(3), teacher_forcing_per="batch")
    model.decoder.teacher_forcing.training_step.assign(0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=BACKEND == "jax")  # XLA takes long to compile
    model.optimizer.build(model.trainable_variables)  # or Keras traces the training step twice
    inputs = translation_inputs()
    model.fit(inputs, inputs["target_ids"], epochs=3, batch_size=1, verbose=0)
    return model, inputs


@pytest.mark.long
def test_training_counts_its_steps_and_nothing_else_does(tmp_path):
    model, inputs = fitted()
    steps = 3 * B
    assert numbers(model.decoder.teacher_forcing.training_step) == steps
    model.evaluate(inputs, inputs["target_ids"], verbose=0)
    model.predict(inputs, verbose=0)
    model(inputs)
    assert numbers(model.decoder.teacher_forcing.training_step) == steps
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert numbers(loaded.decoder.teacher_forcing.training_step) == steps
    assert loaded.decoder.teacher_forcing.schedule == InverseSigmoidDecay(3)
    assert loaded.get_config() == model.get_config()


def test_half_precision_counts_on(restored):
    keras.config.set_dtype_policy("mixed_float16")
    model = make({}, LinearDecay(1.0, 1e-4))
    model.decoder.teacher_forcing.training_step.assign(4097)
    model(translation_inputs(), training=True)
    assert numbers(model.decoder.teacher_forcing.training_step) == 4098

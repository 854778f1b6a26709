"""A compiled function gives what Python gives, with the weights and seeds of the day."""

import keras
import numpy as np
import pytest

from seqkeras.decoding import (
    MinLength,
    RepetitionPenalty,
    TopP,
    beam,
    compiled,
    greedy,
    sample,
)
from seqkeras.models import RNNSeq2Seq
from tests.arrays import BACKEND, close, floats, numbers, randomize
from tests.conftest import others_long
from tests.seqkeras.decoding.toys import BOS, EOS

IDS = {"start_id": BOS, "end_id": EOS}
VOCAB_SIZE, MAX_LENGTH = 13, 7
SOURCES, LENGTHS = np.random.default_rng(0).integers(1, VOCAB_SIZE, (3, 5)), np.array([5, 3, 1])
traces = pytest.mark.skipif(BACKEND == "torch", reason="PyTorch runs the function itself")


def make():
    model = RNNSeq2Seq.bahdanau(VOCAB_SIZE, VOCAB_SIZE, embedding_dim=5, units=7, decoder_units=11)
    model.build()
    return randomize(model)


def translation(model, search, **options):
    def translate(token_ids, lengths):
        state = model.encode(token_ids, lengths)
        return search(model.step, state, max_length=MAX_LENGTH, **IDS, **options)

    return translate


SEARCHES = {
    "greedy": (greedy, {}),
    "beam": (beam, {"num_beams": 3, "n_best": 2, "length_penalty": 0.7}),
    "sample": (sample, {"seed": 3, "top_k": 5, "processors": [TopP(0.9)]}),
}


@pytest.mark.parametrize("search, options", others_long(SEARCHES.values()), ids=SEARCHES)
def test_a_compiled_search_answers_as_python_does_before_and_after_training(search, options):
    model = make()
    translate = translation(model, search, **options)
    fast = compiled(translate)
    before = numbers(fast(SOURCES, LENGTHS))
    close(before, translate(SOURCES, LENGTHS), atol=1e-5)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.build(model.trainable_variables)
    model.optimizer.learning_rate = 3.0
    inputs = {"token_ids": SOURCES, "lengths": LENGTHS, "target_ids": SOURCES}
    model.train_on_batch(inputs, SOURCES)
    after = numbers(fast(SOURCES, LENGTHS))
    assert np.any(after[2] != before[2])
    close(after, translate(SOURCES, LENGTHS), atol=1e-5)


@pytest.mark.parametrize("policy", others_long(["mixed_float16", "mixed_bfloat16", "float64"]))
def test_a_model_of_any_precision_decodes(policy, restored):
    if policy == "float64":
        if BACKEND == "jax":
            pytest.skip("JAX computes in float64 only when told at its start")
        keras.config.set_floatx("float64")
    keras.config.set_dtype_policy(policy)
    options = {"coverage_penalty": 0.2, "source_mask": np.arange(5) < LENGTHS[:, None]}
    options["processors"] = [RepetitionPenalty(1.2), MinLength(5, EOS), TopP(0.9)]
    options["prompt"] = np.array([[4, 5, 6], [7, 0, 0], [8, 9, 0]]), np.array([3, 1, 2])
    translate = translation(make(), beam, num_beams=3, **options)
    _, lengths, scores = numbers(translate(SOURCES, LENGTHS))
    assert lengths.min() > 0 and scores.dtype == "float32" and np.isfinite(scores).all()


def test_a_generator_goes_on_where_the_last_call_left_it():
    model = make()
    draws = []
    for wrap in (compiled, lambda function: function):
        seed = keras.random.SeedGenerator(5)
        translate = wrap(translation(model, sample, seed=seed))
        draws.append([numbers(translate(SOURCES, LENGTHS))[0].tolist() for _ in range(3)])
    assert draws[0] == draws[1]
    assert draws[0][0] != draws[0][1] != draws[0][2]


@traces
def test_equal_shapes_are_traced_once():
    runs, weight = [], keras.Variable(floats(7))

    @compiled
    def scaled(tensors, *, factor):
        runs.append(factor)
        return {name: factor * weight * each for name, each in tensors.items()}

    for seed in range(3):
        tensors = {"a": floats(5, 7, seed=seed), "b": floats(7, seed=seed)}
        expected = {name: seed * floats(7) * each for name, each in tensors.items()}
        found = scaled(tensors, factor=np.array(seed, "float32"))
        assert found.keys() == expected.keys()
        close(list(found.values()), list(expected.values()))
        if seed == 0:
            first = len(runs)
    assert len(runs) == first


@traces
def test_other_shapes_are_answered_too():
    model = make()
    translate = translation(model, greedy)
    fast = compiled(translate)
    for rows, length in ((3, 5), (2, 4)):
        inputs = SOURCES[:rows, :length], np.minimum(LENGTHS[:rows], length)
        close(fast(*inputs), translate(*inputs), atol=1e-5)


def test_what_the_function_assigns_stays():
    count = keras.Variable(0, dtype="int32", trainable=False)
    last = keras.Variable(np.zeros(3, "float32"))

    @compiled
    def remember(values):
        count.assign(count + 1)
        last.assign(values)
        return count * 2

    for call in (1, 2, 3):
        assert numbers(remember(floats(3, seed=call))) == 2 * call
        close(last, floats(3, seed=call))
    assert numbers(count.value) == 3


def test_functions_of_one_body_do_not_share_their_variables():
    weight = keras.Variable(1.0)

    def read(values):
        return values * weight

    for value in (2.0, 3.0):
        fast = compiled(read)
        close(fast(floats(3)), float(numbers(weight.value)) * floats(3))
        weight.assign(value)
        close(fast(floats(3)), value * floats(3))


def test_a_model_that_is_not_built_is_built_by_the_first_call():
    layer = keras.layers.Dense(5)
    found = compiled(lambda values: layer(values))(floats(3, 7))
    close(found, layer(floats(3, 7)))
    assert np.any(numbers(found) != 0)


def test_an_argument_that_is_left_out_stays_none():
    @compiled
    def scaled(x, factor=None, *, shift=None):
        x = x if factor is None else factor * x
        return x if shift is None else x + shift

    x = floats(5, 7)
    close(scaled(x, None), x)
    close(scaled(x, np.float32(2), shift=None), 2 * x)
    close(scaled(x, shift=floats(7)), x + floats(7))


def test_what_is_no_tensor_is_refused_by_its_name():
    class Model:
        @compiled
        def step(self, x):
            return x

    @compiled
    def scaled(x, *, factor):
        return factor * x

    for call, name, received in (
        (lambda: scaled(floats(5), factor=2.0), "'factor' of scaled", "float"),
        (lambda: scaled([1.0, 2.0], factor=floats(5)), "0 of scaled", "float"),
        (lambda: Model().step(floats(5)), "0 of step", "Model"),
    ):
        message = f"^compiled: argument {name} must be of arrays, tensors .*; received {received}.$"
        with pytest.raises(TypeError, match=message):
            call()

"""Every family as a SavedModel on token ids: core operators, answers as Keras, no need of us."""

import functools
import tempfile
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seqkeras.export import saved_model
from seqkeras.export.families import plan_export
from seqkeras.export.tensorflow_serving.batching import may_be_batched
from seqkeras.export.tensorflow_serving.inputs import Inputs
from seqkeras.recurrent import GRU
from seqkeras.serving.manifest import DecodingDefaults, TensorSpec
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats, numbers, randomize
from tests.catalogue import models, seq2seq, transformer_models, trees
from tests.export.operators import graph_of, require_answers_without_us, require_core

GREEDY = DecodingDefaults(start_id=2, end_id=3)
LENGTH = 6  # the most tokens that are generated
SOURCE = {"token_ids": np.array([[5, 7, 11, 0], [13, 4, 6, 9]]), "lengths": np.array([3, 4])}
PROMPT = {"token_ids": np.array([[5, 7, 11], [13, 0, 0]]), "lengths": np.array([3, 1])}


class Subclass(keras.Model):
    """A model of the user's, of our layers."""

    def __init__(self):
        super().__init__()
        self.recurrent, self.dense = GRU(5), keras.layers.Dense(3)

    def call(self, inputs):
        return {"probabilities": ops.softmax(self.dense(self.recurrent(inputs)))}


def functional():
    """A plain Keras model."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = keras.layers.Embedding(17, 6, mask_zero=True)(ids)
    x = keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True))(x)
    x = keras.layers.MultiHeadAttention(2, 3)(x, x)
    return keras.Model(ids, keras.layers.Dense(7, "gelu")(x))


def subclass():
    model = Subclass()
    model(floats(1, 2, 4))
    return model


def of_catalogue(case, inputs=None, **besides):
    return lambda: (case.build(), (case.inputs() if inputs is None else inputs) | besides)


# Name -> a function that makes the model and what it is called with.
SINGLE = {
    "bert": of_catalogue(transformer_models.BERTS[0]),
    "several heads": of_catalogue(
        transformer_models.WITH_HEADS[0], masked_positions=np.array([[3, 1, 2], [0, 2, 0]])
    ),
    "multiple choice": of_catalogue(
        transformer_models.WITH_HEADS[-1],
        segment_ids=transformer_models.choice_inputs()["token_ids"] % 3,
    ),
    "sentences": of_catalogue(transformer_models.SENTENCES[0]),
    "bidaf": of_catalogue(models.BIDAF[0]),
    "bilm": of_catalogue(models.BILM[0]),
    "forecaster": of_catalogue(models.FORECASTERS[0]),
    "forecaster, known": of_catalogue(models.FORECASTERS[2]),
    "tree rnn": of_catalogue(trees.CASES[-3]),
    "tree lstm": of_catalogue(trees.CASES[-1]),
    "functional": lambda: (functional(), {"ids": np.array([[5, 3, 0], [7, 16, 1]])}),
    "subclass": lambda: (subclass(), {"sequence": floats(2, 5, 4)}),
}
CALLED_WITH = {"subclass": [TensorSpec("sequence", "float32", ("batch", "length", 4))]}

ENCODER_DECODERS = {
    "gru": of_catalogue(seq2seq.BAHDANAU[0], SOURCE),
    "lstm, local": of_catalogue(seq2seq.LUONG[0], SOURCE),
    "multi-head, fed": of_catalogue(seq2seq.HEADS[1], SOURCE),
    "transformer": of_catalogue(transformer_models.TRANSFORMERS[0], SOURCE),
    "transformer, pre-norm": of_catalogue(transformer_models.TRANSFORMERS[1], SOURCE),
}
LANGUAGE_MODELS = {
    "gpt": of_catalogue(transformer_models.GPTS[0], PROMPT),
    "rnn language model": of_catalogue(models.LANGUAGE[2], PROMPT),
}
GENERATING = ENCODER_DECODERS | LANGUAGE_MODELS
ALL = SINGLE | GENERATING
SHORT = {"bert", "several heads", "forecaster", "functional", "gru", "gpt"}
FOLDER = tempfile.TemporaryDirectory(prefix="saved-models-")


def every(names):
    """A test for each name; `make test` has those of SHORT."""
    return pytest.mark.parametrize(
        "name",
        [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in names],
    )


@functools.cache
def saved(name):
    """A model with random weights, an input, its parts, and the folder of its SavedModel."""
    model, inputs = ALL[name]()
    randomize(model)
    parts = plan_export(model, CALLED_WITH.get(name), max_length=LENGTH, decoding=GREEDY)
    folder = Path(FOLDER.name) / name.replace(", ", "_").replace(" ", "_")
    saved_model.write(model, parts.saved_model, folder)
    return model, inputs, parts, folder


@functools.cache
def signatures(name):
    return tf.saved_model.load(str(saved(name)[-1])).signatures


def answer(name, signature, inputs):
    """What a signature gives, as NumPy."""
    return numbers(dict(signatures(name)[signature](**tensors(name, signature, inputs))))


def behind_start(generated):
    """The target that a decoder reads to give the ids."""
    return {"target_ids": np.pad(generated, [(0, 0), (1, 0)], constant_values=2)[:, :-1]}


def tensors(name, signature, inputs):
    """The arrays as the signature's dtypes."""
    specs = saved(name)[2].saved_model[signature].inputs
    return {spec.name: tf.constant(inputs[spec.name], spec.dtype) for spec in specs}


@every(ALL)
def test_it_holds_core_operators_only_by_the_names_that_were_promised(name):
    _, _, parts, folder = saved(name)
    require_core(folder)
    for key, declared in parts.saved_model.items():
        loaded = signatures(name)[key]
        inputs, outputs = loaded.structured_input_signature[1], loaded.structured_outputs
        assert {each.name for each in declared.inputs} == set(inputs)
        assert {each.name for each in declared.outputs} == set(outputs)


@every(SINGLE)
def test_it_answers_as_keras_in_a_single_pass(name):
    model, inputs, *_ = saved(name)
    alone = name in ("functional", "subclass")
    expected = keras.tree.flatten(model(*inputs.values()) if alone else model(inputs))
    actual = answer(name, "serving_default", inputs)
    for key, each in zip(sorted(actual), expected, strict=True):  # flatten sorts them too
        close(actual[key], each, rtol=1e-4, atol=1e-5)


@every(GENERATING)
def test_it_scores_a_target_and_generates_step_by_step_what_keras_would(name):
    model, inputs, _, _ = saved(name)
    ids = answer(name, "generate", inputs)
    generated, lengths = ids["generated_ids"], ids["generated_lengths"]
    assert generated.shape == (2, LENGTH)
    if name in LANGUAGE_MODELS:
        for row, prompt, length in zip(generated, *inputs.values(), strict=True):
            np.testing.assert_array_equal(row[:length], prompt[:length])
        shown, begin = generated[:, 1:], inputs["lengths"] - 1
        read = {"token_ids": generated[:, :-1]}
    else:
        shown, begin, read = generated, [0, 0], inputs | behind_start(generated)
    log_probs = answer(name, "serving_default", read)["log_probs"]
    logits = numbers(model(read))
    logits[..., getattr(model, "never_generated", [])] = BANNED_LOGIT
    close(log_probs, ops.log_softmax(logits), rtol=1e-4, atol=1e-4)
    ends = lengths - (generated.shape[1] - shown.shape[1])
    for row in range(2):
        steps = range(begin[row], ends[row])
        best = log_probs[row].argmax(-1)
        assert [shown[row, t] for t in steps] == [best[t] for t in steps]
        assert 3 not in shown[row, list(steps)[:-1]]
        score = sum(log_probs[row, t, shown[row, t]] for t in steps)
        np.testing.assert_allclose(ids["scores"][row], score, rtol=1e-4, atol=1e-4)
    assert max(lengths) > 2 and not generated[0, lengths[0] :].any()


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("bert", "token_ids", 17, "token_ids: each must be from 0 to 16"),
        ("bert", "segment_ids", 19, "segment_ids: each must be from 0 to 18"),
        ("gpt", "token_ids", -1, "token_ids: each must be from 0 to 16"),
        ("several heads", "lengths", 0, "lengths: each must be from 1 to the length of token_ids"),
        ("several heads", "lengths", 2**32 + 1, "lengths: each must be from 1 to the length of to"),
        (
            "several heads",
            "masked_positions",
            7,
            "masked_positions: each must be from 0 to the length of token_ids less one",
        ),
    ],
)
def test_ids_and_lengths_out_of_range_are_refused(name, key, value, message):
    inputs = tensors(name, "serving_default", saved(name)[1])
    inputs[key] = tf.fill(tf.shape(inputs[key]), tf.constant(value, inputs[key].dtype))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        signatures(name)["serving_default"](**inputs)


@pytest.mark.parametrize(
    ("name", "signature", "first"),
    [
        ("bert", "serving_default", "(token_ids|lengths|segment_ids)"),
        ("forecaster", "serving_default", "(window|lengths)"),
        ("gru", "generate", "token_ids"),
        ("gpt", "generate", "token_ids"),
    ],
)
def test_a_batch_without_a_row_is_refused(name, signature, first):
    inputs = tensors(name, signature, saved(name)[1])
    inputs = {key: each[:0] for key, each in inputs.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{first}: must have a row at least"):
        signatures(name)[signature](**inputs)


@every(LANGUAGE_MODELS)
def test_a_prompt_that_leaves_no_room_is_refused(name):
    given = {"token_ids": np.ones((2, LENGTH + 1), int), "lengths": np.full(2, LENGTH - 1)}
    found = answer(name, "generate", given)
    assert found["generated_lengths"].tolist() == [LENGTH, LENGTH]
    message = f"lengths: at most {LENGTH - 1}, so that something can follow a prompt"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        answer(name, "generate", {**given, "lengths": np.array([1, LENGTH])})


@every(["gpt", "transformer"])
def test_keys_and_values_are_carried_from_step_to_step(name):
    model, _, _, folder = saved(name)
    loops = [
        [[size.size for size in shape.dim] for shape in node.attr["output_shapes"].list.shape]
        for function in graph_of(folder).library.function
        for node in function.node_def
        if node.op in ("While", "StatelessWhile")
    ]
    caches = [e for e in model.state_entries if "cache_length" in e.shape]
    assert caches
    assert any(sum(len(shape) == 5 for shape in carried) == len(caches) for carried in loops)


@every(["gru", "rnn language model", "forecaster"])
def test_no_gradients_of_our_layers_are_kept(name):
    graph = graph_of(saved(name)[-1])
    functions = [graph.node, *(function.node_def for function in graph.library.function)]
    assert not any("_gradient_op_type" in node.attr for nodes in functions for node in nodes)


def as_the_server_pads(requests):
    """One batch, where what is shorter is padded with the first element of its own request."""
    batch = {}
    for name in requests[0]:
        arrays = [each[name] for each in requests]
        shape = [max(sizes) for sizes in zip(*(each.shape for each in arrays))]
        batch[name] = np.stack([np.full(shape, each.ravel()[0]) for each in arrays])
        for row, each in enumerate(arrays):
            batch[name][(row, *map(slice, each.shape))] = each
    return batch


@every(ALL)
def test_requests_that_the_server_pads_get_the_answers_that_they_get_alone(name):
    _, inputs, parts, _ = saved(name)
    key = "generate" if name in GENERATING else "serving_default"
    examples = [{each: inputs[each][row] for each in inputs} for row in range(2)]
    manifest = SimpleNamespace(pipeline="Answer", examples=(), settings={"word_length": 11})
    rows = Inputs(manifest, examples).of(parts.saved_model[key])
    if name == "bidaf":
        assert {rows[0][f"{side}_characters"].shape[1] for side in ("query", "context")} == {11}
    function = signatures(name)[key]
    together = function(**tensors(name, key, as_the_server_pads(rows)))
    for place, row in enumerate(rows):
        alone = function(**tensors(name, key, as_the_server_pads([row])))
        for output, expected in numbers(dict(alone)).items():
            actual = together[output].numpy()[place][tuple(map(slice, expected.shape[1:]))]
            close(actual, expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(("width", "same"), [(0, False), (11, True)])
def test_characters_must_be_as_wide_as_the_notes_say(width, same):
    _, inputs, parts, _ = saved("bidaf")
    examples = [{each: inputs[each][row] for each in inputs} for row in range(2)]
    for side in ("query", "context"):  # of words of one character
        examples[1][f"{side}_characters"] = examples[1][f"{side}_characters"][:, :1]
    manifest = SimpleNamespace(pipeline="Answer", examples=(), settings={"word_length": width})
    rows = {"serving_default": Inputs(manifest, examples).of(parts.saved_model["serving_default"])}
    assert may_be_batched(signatures("bidaf"), rows) == same


@pytest.mark.long
def test_all_load_and_answer_where_neither_we_nor_keras_are():
    wanted, expected = [], {}
    for name in ALL:
        _, inputs, parts, folder = saved(name)
        key = "generate" if name in GENERATING else "serving_default"
        given = {spec.name: inputs[spec.name].tolist() for spec in parts.saved_model[key].inputs}
        wanted.append([str(folder), key, given])
        expected[str(folder)] = dict(signatures(name)[key](**tensors(name, key, inputs)))
    require_answers_without_us(wanted, expected)

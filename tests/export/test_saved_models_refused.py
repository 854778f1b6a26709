"""Token ids that a SavedModel refuses: sizes that do not match, and a plain Keras model's ids.

A signature's own function is called, which refuses as the graph that is made of it does.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from seqkeras.export import feeds, saved_model
from seqkeras.export.families import plan_export
from seqkeras.serving.manifest import DecodingDefaults, TensorSpec
from tests.conftest import others_long
from tests.export.test_saved_models_of_families import ALL, CALLED_WITH, LENGTH, every

BEAMS = DecodingDefaults(num_beams=2, start_id=2, end_id=3)
TARGET = {"target_ids": np.array([[2, 5, 7], [2, 9, 4]])}


@functools.cache
def made(name):
    """The signatures of a model by name, and what they take."""
    model, inputs = ALL[name]()
    parts = plan_export(model, CALLED_WITH.get(name), max_length=LENGTH, decoding=BEAMS)
    return parts.saved_model, inputs | TARGET


def asked(name, signature="serving_default"):
    """The function of a signature, and what is right for it."""
    signatures, inputs = made(name)
    specs = signatures[signature].inputs
    right = {spec.name: tf.constant(inputs[spec.name], spec.dtype) for spec in specs}
    return signatures[signature].function, right


def refused(function, inputs, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        function(**inputs)


@every(ALL)
def test_inputs_of_other_rows_are_refused(name):
    for signature in made(name)[0]:
        function, right = asked(name, signature)
        for key in right if len(right) > 1 else ():
            for rows in (right[key][:1], tf.repeat(right[key], 2, axis=0)):
                message = f"{key}.*: must have the same size along batch"
                refused(function, right | {key: rows}, message)


@pytest.mark.parametrize(
    ("name", "key", "axis"),
    others_long(
        [
            ("bert", "segment_ids", "length"),
            ("multiple choice", "lengths", "choices"),
            ("bidaf", "query_characters", "query_length"),
            ("tree lstm", "children", "nodes"),
        ]
    ),
)
def test_axes_of_one_name_must_have_one_size(name, key, axis):
    function, given = asked(name)
    given[key] = given[key][:, :1]
    refused(function, given, f"{key}.*: must have the same size along {axis}")


@pytest.mark.parametrize("name", ["bert", "sentences", "gpt"])
def test_more_tokens_than_positions_are_refused(name):
    function, given = asked(name)
    for key in {"token_ids", "segment_ids"} & set(given):
        given[key] = tf.ones((2, 14), given[key].dtype)
    refused(function, given, "token_ids: at most 13 in a row")


def test_ids_and_lengths_of_a_plain_model_are_known_by_name(tmp_path):
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    lengths = keras.Input((), dtype="int32", name="lengths")
    x = keras.layers.Embedding(17, 6)(token_ids)
    x = keras.layers.GlobalAveragePooling1D()(x)
    model = keras.Model([token_ids, lengths], x * keras.ops.cast(lengths, "float32")[:, None])
    inputs = [
        TensorSpec("token_ids", "int64", ("batch", "length")),
        TensorSpec("lengths", "int32", ("batch",)),
    ]
    saved_model.write(model, plan_export(model, inputs).saved_model, tmp_path)
    plain = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    one_column = "(token_ids: must have a column at least|lengths: each must be)"
    one_batch = "token_ids, lengths: must have the same size along batch"
    inside = "lengths: each must be from 1 to the length of token_ids"
    for token_ids, lengths, message in (
        ([[5, -1]], [2], "token_ids: each must be from 0 on"),
        (np.ones((1, 0)), [1], one_column),
        ([[5, 6]], [2, 1], one_batch),
        ([[5, 6], [7, 8]], [2], one_batch),
        ([[5, 6]], [3], inside),
        ([[5, 6]], [0], inside),
    ):
        given = {"token_ids": tf.constant(token_ids, "int64"), "lengths": tf.constant(lengths)}
        refused(plain, given, message)


@pytest.mark.parametrize("token_ids", [[[5, -1]], np.ones((1, 0))])
def test_a_plain_model_of_ids_alone_refuses_what_is_none(token_ids):
    model = keras.Sequential([keras.Input((None,), name="token_ids"), keras.layers.Embedding(7, 3)])
    signature = plan_export(model, feeds=feeds.TEXTS).saved_model["serving_default"]
    given = {"token_ids": tf.constant(token_ids, "int64")}
    refused(signature.function, given, "token_ids: (each must be from 0 on|must have a column)")

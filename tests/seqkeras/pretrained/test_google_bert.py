"""Checkpoints of TensorFlow 1, beside the formulas in NumPy by Google's names."""

import json
import os
import types
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pytest

from seqkeras.models import Bert, WithHeads
from seqkeras.pretrained.assignment import find_problems
from seqkeras.pretrained.google_bert import (
    _arguments,
    harmless,
    links_of,
    load_google_bert,
    make_model,
    read_tensors,
)
from tests.arrays import BACKEND, close, floats, numbers
from tests.references import transformer as references

tf = pytest.importorskip("tensorflow", reason="a checkpoint is read by TensorFlow")
V, D, N, F, LAYERS, PLACES, EPSILON = 17, 6, 3, 11, 2, 13, 1e-12
CONFIG = {
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": N,
    "intermediate_size": F,
    "max_position_embeddings": PLACES,
    "hidden_act": "gelu",
    "directionality": "bidi",
}
TOKENS = {
    "token_ids": np.array([[3, 8, 16, 2, 5], [7, 1, 4, 0, 0]]),
    "segment_ids": np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]]),
    "lengths": np.array([5, 3]),
}


def shapes():
    """The variables of such a checkpoint, written out from Google's code."""
    found = {
        "bert/embeddings/word_embeddings": (V, D),
        "bert/embeddings/token_type_embeddings": (2, D),
        "bert/embeddings/position_embeddings": (PLACES, D),
        "bert/pooler/dense/kernel": (D, D),
        "bert/pooler/dense/bias": (D,),
        "cls/predictions/transform/dense/kernel": (D, D),
        "cls/predictions/transform/dense/bias": (D,),
        "cls/predictions/output_bias": (V,),
        "cls/seq_relationship/output_weights": (2, D),
        "cls/seq_relationship/output_bias": (2,),
    }
    norms = ["bert/embeddings/LayerNorm", "cls/predictions/transform/LayerNorm"]
    for layer in range(LAYERS):
        prefix = f"bert/encoder/layer_{layer}"
        norms += [f"{prefix}/attention/output/LayerNorm", f"{prefix}/output/LayerNorm"]
        for name, rows, columns in (
            ("attention/self/query", D, D),
            ("attention/self/key", D, D),
            ("attention/self/value", D, D),
            ("attention/output/dense", D, D),
            ("intermediate/dense", D, F),
            ("output/dense", F, D),
        ):
            found[f"{prefix}/{name}/kernel"] = (rows, columns)
            found[f"{prefix}/{name}/bias"] = (columns,)
    for name in norms:
        found |= {f"{name}/gamma": (D,), f"{name}/beta": (D,)}
    return found


def values(**changes):
    arrays = {
        name: 0.5 * floats(*shape, seed=place)
        for place, (name, shape) in enumerate(shapes().items())
    }
    return arrays | changes


def save(folder, arrays, config=CONFIG):
    """A checkpoint as TensorFlow 1 writes it."""
    (folder / "bert_config.json").write_text(json.dumps(config))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.get_variable(name, initializer=array, use_resource=False)
            for name, array in arrays.items()
        ]
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        path = str(folder / "bert_model.ckpt")
        saver.save(session, path, write_meta_graph=False, write_state=False)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("bert"), values())


def expected(arrays, activation):
    """Hidden states, pooled, logits of masked LM and next sentence, of rows without padding."""
    arrays = {name: each.astype("float64") for name, each in arrays.items()}

    def dense(x, name):
        return x @ arrays[f"{name}/kernel"] + arrays[f"{name}/bias"]

    def norm(x, name):
        return references.layer_norm(x, *norm_of(name), EPSILON)

    def norm_of(name):
        return arrays[f"{name}/gamma"], arrays[f"{name}/beta"]

    def block(layer):
        prefix = f"bert/encoder/layer_{layer}"
        attention = []
        for part in ("query", "key", "value"):
            kernel, bias = (arrays[f"{prefix}/attention/self/{part}/{kind}"] for kind in KINDS)
            attention += [kernel.reshape(D, N, -1), bias.reshape(N, -1)]
        kernel, bias = (arrays[f"{prefix}/attention/output/dense/{kind}"] for kind in KINDS)
        return {
            "attention": [*attention, kernel.reshape(N, -1, D), bias],
            "attention_norm": norm_of(f"{prefix}/attention/output/LayerNorm"),
            "feed_forward": [
                arrays[f"{prefix}/{name}/dense/{kind}"]
                for name in ("intermediate", "output")
                for kind in KINDS
            ],
            "feed_forward_norm": norm_of(f"{prefix}/output/LayerNorm"),
        }

    outputs = []
    blocks = [block(layer) for layer in range(LAYERS)]
    words = arrays["bert/embeddings/word_embeddings"]
    for row, length in enumerate(TOKENS["lengths"]):
        tokens, segments = (TOKENS[each][row, :length] for each in ("token_ids", "segment_ids"))
        x = (
            words[tokens]
            + arrays["bert/embeddings/token_type_embeddings"][segments]
            + arrays["bert/embeddings/position_embeddings"][:length]
        )
        x = references.transformer_stack(
            norm(x, "bert/embeddings/LayerNorm")[None],
            None,
            blocks,
            None,
            pre_norm=False,
            epsilon=EPSILON,
            activation=activation,
        )[0]
        pooled = np.tanh(dense(x[0], "bert/pooler/dense"))
        gelu = references.ACTIVATIONS[activation]
        transformed = norm(
            gelu(dense(x, "cls/predictions/transform/dense")), "cls/predictions/transform/LayerNorm"
        )
        outputs.append(
            {
                "hidden": x,
                "pooled": pooled,
                "masked": transformed @ words.T + arrays["cls/predictions/output_bias"],
                "next": pooled @ arrays["cls/seq_relationship/output_weights"].T
                + arrays["cls/seq_relationship/output_bias"],
            }
        )
    return outputs


KINDS = ("kernel", "bias")


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu"])
def test_a_checkpoint_computes_what_its_variables_say(activation, folder, tmp_path):
    if activation == "relu":
        folder = save(tmp_path, values(), CONFIG | {"hidden_act": "relu"})
    model = load_google_bert(folder, exact_gelu=activation == "gelu")
    found = {**numbers(model.encoder(TOKENS)), **numbers(model(TOKENS))}
    for row, one in enumerate(expected(values(), activation)):
        length = TOKENS["lengths"][row]
        for name, each in one.items():
            actual = found[name][row]
            actual = actual[:length] if name in ("hidden", "masked") else actual
            close(actual, each, rtol=1e-4, atol=1e-4)


def test_an_encoder_is_read_without_its_heads(folder):
    model = load_google_bert(folder, heads=False)
    assert isinstance(model, Bert)
    with_heads = load_google_bert(folder)
    assert isinstance(with_heads, WithHeads)
    close(model(TOKENS), with_heads.encoder(TOKENS))
    assert model.config["dropout"] == 0.1 and model.config["activation"] == "gelu_tanh"


def test_what_is_read_is_saved_as_keras_saves_it(folder, tmp_path):
    model = load_google_bert(folder)
    model.save(tmp_path / "model.keras")
    close(keras.saving.load_model(tmp_path / "model.keras")(TOKENS), model(TOKENS))


def test_the_state_of_adam_is_left_alone(tmp_path):
    adam = {
        f"{name}/adam_{letter}": np.zeros(shape, "float32")
        for name, shape in shapes().items()
        for letter in "mv"
    }
    save(tmp_path, values() | adam | {"global_step": np.array(7, "int64")})
    assert isinstance(load_google_bert(tmp_path), WithHeads)


def test_a_dtype_is_that_of_the_model(folder):
    model = load_google_bert(folder, dtype="mixed_float16")
    assert "float16" in str(model.encoder(TOKENS)["hidden"].dtype)


def test_what_differs_is_refused_in_one_error(tmp_path):
    arrays = values()
    del arrays["bert/pooler/dense/bias"]
    arrays["bert/embeddings/word_embeddings"] = floats(V + 1, D)
    arrays["cls/squad/output_bias"] = floats(2)
    save(tmp_path, arrays)
    with pytest.raises(ValueError, match="^WithHeads: .*bert_model.ckpt must hold ") as error:
        load_google_bert(tmp_path)
    assert "received 3 that differ" in str(error.value)
    for line in (
        "bert/pooler/dense/bias: missing",
        "bert/embeddings/word_embeddings: has shape (18, 6), must have (17, 6)",
        "cls/squad/output_bias: has no use",
    ):
        assert line in str(error.value)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_attention_heads": 4}, "num_attention_heads must divide hidden_size; received 4 and"),
        ({"vocab_size": None}, "vocab_size must be a whole number from 1; received None"),
        ({"hidden_act": "tanh"}, "hidden_act must be one of "),
    ],
)
def test_a_config_that_makes_no_model_is_refused(change, message, tmp_path):
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(ValueError, match=f"bert_config.json: 1 field .*\n  {message}"):
        load_google_bert(tmp_path)


def test_a_config_of_another_kind_is_refused(tmp_path):
    (tmp_path / "bert_config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"bert_config.json: must hold an object of JSON; .* \[\]"):
        load_google_bert(tmp_path)


def test_files_that_are_not_there_are_named(folder, tmp_path):
    with pytest.raises(ValueError, match="bert_config.json: must be there"):
        load_google_bert(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(ValueError, match="bert_model.ckpt: must be a checkpoint; received "):
        load_google_bert(tmp_path)
    index = (folder / "bert_model.ckpt.index").read_bytes()
    (tmp_path / "bert_model.ckpt.index").write_bytes(index)
    with pytest.raises(
        ValueError, match="must hold the values, bert_model.ckpt.data-...; found na"
    ):
        load_google_bert(tmp_path)


DATA = Path(os.environ.get("SEQKERAS_DATA", "")) / "bert-ckpt-index"


@pytest.mark.skipif(
    "SEQKERAS_DATA" not in os.environ or not DATA.is_dir(),
    reason="needs the folder bert-ckpt-index in the one that SEQKERAS_DATA names",
)
@pytest.mark.skipif(BACKEND != "tensorflow", reason="names and shapes are the same everywhere")
def test_the_released_checkpoint_has_the_names_and_shapes_of_ours():
    def add_weight(self, shape=None, **options):  # asked for, and not made
        return types.SimpleNamespace(shape=shape)

    tensors = read_tensors(DATA / "bert_model.ckpt")
    expected = json.loads((DATA / "variables.json").read_text())
    assert len(expected) == len(tensors) == 206
    for each in expected:
        assert tensors[each["name"]].shape == tuple(each["shape"])
        assert tensors[each["name"]].dtype == each["dtype"]
    for heads in (True, False):
        with mock.patch.object(keras.layers.Layer, "add_weight", add_weight):
            model = make_model(_arguments(DATA, exact_gelu=False), heads)
            model.build(None)
            links = links_of(model)
            assert find_problems(model, links, tensors, harmless(heads)) == []
        found = {link.name: link.shape for link in links}
        if heads:
            assert found == {name: each.shape for name, each in tensors.items()}
        assert len(found) == (206 if heads else 199)

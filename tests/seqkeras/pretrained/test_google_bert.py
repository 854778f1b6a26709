"""Checkpoints of TensorFlow 1, beside files of Hugging Face with the same numbers."""

import json
import re
import types
from unittest import mock

import keras
import numpy as np
import pytest
from safetensors.numpy import save_file

from seqkeras.models import Bert, WithHeads
from seqkeras.pretrained import load_hugging_face
from seqkeras.pretrained.assignment import find_problems
from seqkeras.pretrained.google_bert import (
    _arguments,
    harmless,
    links_of,
    load_google_bert,
    make_model,
    read_tensors,
)
from tests.arrays import BACKEND, close, floats
from tests.conftest import others_long, public_data

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


@pytest.mark.parametrize("activation", others_long(["gelu_tanh", "gelu", "relu"]))
def test_a_checkpoint_computes_what_hugging_face_s_file_of_its_variables_does(activation, tmp_path):
    config = CONFIG | {"hidden_act": "relu"} if activation == "relu" else CONFIG
    actual = load_google_bert(save(tmp_path, values(), config), exact_gelu=activation == "gelu")
    names = {"gelu_tanh": "gelu_new"}
    config = config | {"model_type": "bert", "architectures": ["BertForPreTraining"]}
    config |= {"hidden_act": names.get(activation, activation), "layer_norm_eps": EPSILON}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = dict(as_hugging_face(*variable) for variable in values().items())
    save_file(tensors, tmp_path / "model.safetensors")
    expected = load_hugging_face(tmp_path)
    close(actual.encoder(TOKENS), expected.encoder(TOKENS), rtol=1e-4, atol=1e-4)
    close(actual(TOKENS), expected(TOKENS), rtol=1e-4, atol=1e-4)


def as_hugging_face(name, array):
    """The name and array of a variable in Hugging Face's file, whose kernels are turned."""
    name = re.sub(r"layer_(\d+)", r"layer.\1", name.replace("/", "."))
    name = re.sub(r"(?<=embeddings)$", ".weight", name)
    name = re.sub(
        r"(gamma|output_weights)$", "weight", re.sub(r"(beta|output_bias)$", "bias", name)
    )
    if name.endswith("kernel"):
        return name.removesuffix("kernel") + "weight", array.T.copy()
    return name, array


def test_an_encoder_is_read_without_its_heads(folder):
    model = load_google_bert(folder, heads=False)
    assert isinstance(model, Bert)
    with_heads = load_google_bert(folder)
    assert isinstance(with_heads, WithHeads)
    close(model(TOKENS), with_heads.encoder(TOKENS))
    assert model.config["dropout"] == 0.1 and model.config["activation"] == "gelu_tanh"


def test_the_state_of_adam_is_left_alone(tmp_path):
    adam = {
        f"{name}/adam_{letter}": np.zeros(shape, "float32")
        for name, shape in shapes().items()
        for letter in "mv"
    }
    save(tmp_path, values() | adam | {"global_step": np.array(7, "int64")})
    assert isinstance(load_google_bert(tmp_path), WithHeads)


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


@pytest.mark.skipif(BACKEND != "tensorflow", reason="names and shapes are the same everywhere")
def test_the_released_checkpoint_has_the_names_and_shapes_of_ours():
    def add_weight(self, shape=None, **options):  # asked for, and not made
        return types.SimpleNamespace(shape=shape)

    folder = public_data("bert-ckpt-index")
    tensors = read_tensors(folder / "bert_model.ckpt")
    expected = json.loads((folder / "variables.json").read_text())
    assert len(expected) == len(tensors) == 206
    for each in expected:
        assert tensors[each["name"]].shape == tuple(each["shape"])
        assert tensors[each["name"]].dtype == each["dtype"]
    for heads in (True, False):
        with mock.patch.object(keras.layers.Layer, "add_weight", add_weight):
            model = make_model(_arguments(folder, exact_gelu=False), heads)
            model.build(None)
            links = links_of(model)
            assert find_problems(model, links, tensors, harmless(heads)) == []
        found = {link.name: link.shape for link in links}
        if heads:
            assert found == {name: each.shape for name, each in tensors.items()}
        assert len(found) == (206 if heads else 199)

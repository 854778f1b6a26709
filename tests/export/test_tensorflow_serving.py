"""What a bundle holds for TensorFlow Serving: requests that work, and settings that fit."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow.core.framework import tensor_pb2

from export import saved_model
from export.signatures import Signature
from export.tensorflow_serving import WARM_UP, write_serving_files
from serving import manifest as manifests
from serving.manifest import TensorSpec

IDS = TensorSpec("token_ids", "int64", ("batch", "length"))
LENGTHS = TensorSpec("lengths", "int64", ("batch",))
TEXT = TensorSpec("text", "string", ("batch",))
SUM = TensorSpec("sum", "int64", ("batch",))


def messages():
    """The classes of a `PredictionLog`, from a description of its fields."""
    file = descriptor_pb2.FileDescriptorProto(name="log.proto", package="t", syntax="proto3")
    file.dependency.append("tensorflow/core/framework/tensor.proto")
    for name, fields in {
        "Log": [("predict_log", 6, ".t.PredictLog")],
        "PredictLog": [("request", 1, ".t.Request")],
        "Request": [("model_spec", 1, ".t.Spec"), ("inputs", 2, ".t.Request.InputsEntry")],
        "Spec": [("name", 1, None), ("signature_name", 3, None)],
    }.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(name=field, number=number, label=1)
            added.type = 11 if kind else 9  # a message, or a string
            if kind:
                added.type_name = kind
            if field == "inputs":
                added.label = 3  # repeated
                entry = message.nested_type.add(name="InputsEntry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=1, type=9)
                entry.field.add(
                    name="value", number=2, label=1, type=11, type_name=".tensorflow.TensorProto"
                )
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Log"))


LOG = messages()
assert tensor_pb2.TensorProto.DESCRIPTOR.full_name == "tensorflow.TensorProto"


def sums(token_ids, lengths):
    inside = tf.sequence_mask(lengths, tf.shape(token_ids)[1], tf.int64)
    return {"sum": tf.reduce_sum(token_ids * inside, axis=1)}


def refuse(token_ids):
    check = tf.debugging.Assert(tf.reduce_all(token_ids > 5), ["token_ids: must be over 5."])
    with tf.control_dependencies([check]):
        return {"sum": tf.reduce_sum(token_ids, axis=1)}


def count(text):
    return {"sum": tf.cast(tf.strings.length(text), tf.int64)}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A folder with two SavedModels, and its manifest."""
    folder = tmp_path_factory.mktemp("bundle")
    signatures = {
        "saved_model/1": {
            "serving_default": Signature(sums, [IDS, LENGTHS], [SUM]),
            "picky": Signature(refuse, [IDS], [SUM]),
        },
        "saved_model_text/1": {"serving_default": Signature(count, [TEXT], [SUM])},
    }

    class NoModel:
        variables = ()

    for path, named in signatures.items():
        saved_model.write(NoModel, named, folder / path)
    manifest = manifests.Manifest(
        schema_version=manifests.SCHEMA_VERSION,
        name="sums",
        task="toy",
        pipeline="Toy",
        created="2026-01-01T00:00:00+00:00",
        versions={},
        tokenizers={},
        text_prefix=None,
        limits=manifests.Limits(5),
        decoding=manifests.DecodingDefaults(),
        graphs={},
        state=(),
        saved_models={
            path: {
                key: manifests.Signature(tuple(each.inputs), tuple(each.outputs))
                for key, each in named.items()
            }
            for path, named in signatures.items()
        },
        examples=("a", "bc", {"question": "x", "context": "y"}),
        scores={},
        parity={},
        files={},
    )
    return folder, manifest, write_serving_files(folder, manifest)


def logs(folder, path):
    records = tf.data.TFRecordDataset(str(folder / path / WARM_UP))
    return [LOG.FromString(record.numpy()).predict_log.request for record in records]


def test_requests_warm_up_every_signature_that_takes_them(bundle):
    folder, _, counts = bundle
    assert counts == {"saved_model/1": 1, "saved_model_text/1": 2}
    [request] = logs(folder, "saved_model/1")
    assert request.model_spec.name == "sums"
    assert request.model_spec.signature_name == "serving_default"
    inputs = {name: tf.make_ndarray(each) for name, each in request.inputs.items()}
    assert {name: each.dtype for name, each in inputs.items()} == {
        "token_ids": np.int64,
        "lengths": np.int64,
    }
    assert inputs["token_ids"].shape == (1, 2) and inputs["lengths"].tolist() == [2]
    texts = [tf.make_ndarray(each.inputs["text"]) for each in logs(folder, "saved_model_text/1")]
    assert [each.tolist() for each in texts] == [[b"a"], [b"bc"]]
    loaded = tf.saved_model.load(str(folder / "saved_model_text/1")).signatures
    assert loaded["serving_default"](text=tf.constant(texts[1]))["sum"].numpy() == [2]


def test_the_settings_name_both_models_where_the_image_finds_them(bundle):
    folder, *_ = bundle
    place = folder / "tensorflow_serving"
    models, compose = ((place / n).read_text() for n in ("models.config", "compose.yaml"))
    for base, name in (("saved_model", "sums"), ("saved_model_text", "sums_text")):
        assert f'name: "{name}"\n    base_path: "/models/{name}"' in models
        assert f"- ../{base}:/models/{name}:ro" in compose
        assert (place / ".." / base / "1" / "saved_model.pb").is_file()
    assert models.count("{") == models.count("}")
    assert "image: tensorflow/serving:2.21.0" in compose
    assert "U+FDD0 to U+FDEF is refused" in (place / "README.md").read_text()


def test_batches_are_padded_by_the_server(bundle):
    text = (bundle[0] / "tensorflow_serving" / "batching.config").read_text()
    file = descriptor_pb2.FileDescriptorProto(name="batching.proto", package="b", syntax="proto3")
    value = file.message_type.add(name="Int64Value")
    value.field.add(name="value", number=1, label=1, type=3)
    message = file.message_type.add(name="BatchingParameters")
    names = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
    for number, name in enumerate(names, start=1):
        message.field.add(name=name, number=number, label=1, type=11, type_name=".b.Int64Value")
    message.field.add(name="pad_variable_length_inputs", number=7, label=1, type=8)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("b.BatchingParameters"))
    parsed = text_format.Parse(text, kind())
    assert parsed.pad_variable_length_inputs and parsed.max_batch_size.value == 64


def test_a_bundle_without_saved_models_gets_no_files(bundle, tmp_path):
    manifest = dataclasses.replace(bundle[1], saved_models={})
    assert write_serving_files(tmp_path, manifest) == {}
    assert not list(tmp_path.iterdir())

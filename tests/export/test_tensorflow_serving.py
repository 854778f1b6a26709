"""What a bundle holds for TensorFlow Serving: requests that work, and settings that fit."""

import dataclasses
import json
import shlex
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow.core.framework import tensor_pb2

from seqkeras.export import saved_model
from seqkeras.export.exported import Exported
from seqkeras.export.signatures import Signature
from seqkeras.export.tensorflow_serving import WARM_UP, write_serving_files
from seqkeras.export.tensorflow_serving.batching import BATCH_SIZES
from seqkeras.export.tensorflow_serving.inputs import Inputs
from seqkeras.export.tensorflow_serving.notes import notes
from seqkeras.serving import manifest as manifests
from seqkeras.serving.manifest import TensorSpec
from tests.serving.written import write

IDS = TensorSpec("token_ids", "int64", ("batch", "length"))
LENGTHS = TensorSpec("lengths", "int64", ("batch",))
TEXT = TensorSpec("text", "string", ("batch",))
SUM = TensorSpec("sum", "int64", ("batch",))


def message_class(pool, name, messages, dependencies=()):
    """The class of a message, from the fields of it and of others: (name, number, kind) each."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="t", syntax="proto3")
    file.dependency.extend(dependencies)
    for each, fields in messages.items():
        message = file.message_type.add(name=each)
        for field, number, kind in fields:
            label = 3 if field in ("inputs", "allowed_batch_sizes") else 1  # repeated, or not
            added = message.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = MESSAGE, kind
            else:
                added.type = kind
            if field == "inputs":
                entry = message.nested_type.add(name="InputsEntry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=1, type=STRING)
                value = entry.field.add(name="value", number=2, label=1, type=MESSAGE)
                value.type_name = ".tensorflow.TensorProto"
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}"))


INT64, BOOL, STRING, MESSAGE = 3, 8, 9, 11
LOG = message_class(
    descriptor_pool.Default(),
    "Log",
    {
        "Log": [("predict_log", 6, ".t.PredictLog")],
        "PredictLog": [("request", 1, ".t.Request")],
        "Request": [("model_spec", 1, ".t.Spec"), ("inputs", 2, ".t.Request.InputsEntry")],
        "Spec": [("name", 1, STRING), ("signature_name", 3, STRING)],
    },
    [tensor_pb2.DESCRIPTOR.name],
)
LIMITS = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
BATCHING = message_class(
    descriptor_pool.DescriptorPool(),
    "Batching",
    {
        "Int64Value": [("value", 1, INT64)],
        "Batching": [
            *((name, number, ".t.Int64Value") for number, name in enumerate(LIMITS, start=1)),
            ("allowed_batch_sizes", 6, INT64),
            ("pad_variable_length_inputs", 7, BOOL),
        ],
    },
)


def sums(token_ids, lengths):
    inside = tf.sequence_mask(lengths, tf.shape(token_ids)[1], tf.int64)
    return {"sum": tf.reduce_sum(token_ids * inside, axis=1)}


def refuse(token_ids):
    check = tf.debugging.Assert(tf.reduce_all(token_ids > 5), ["token_ids: must be over 5."])
    with tf.control_dependencies([check]):
        return {"sum": tf.reduce_sum(token_ids, axis=1)}


def count(text):
    return {"sum": tf.cast(tf.strings.length(text), tf.int64)}


EXAMPLES = [{"token_ids": np.array(ids)} for ids in ([3, 4, 1, 2], [3, 4], [7, 6, 1, 0, 2, 5])]


class NoModel:
    variables = ()


def write_toy(folder, signatures):
    """SavedModels of path -> name -> (function, inputs), each with one output; their manifest."""
    signatures = {
        path: {key: Signature(*each, [SUM]) for key, each in named.items()}
        for path, named in signatures.items()
    }
    for path, named in signatures.items():
        saved_model.write(NoModel, named, folder / path)
    saved_models = {
        path: {
            key: manifests.SignatureSpec(tuple(each.inputs), tuple(each.outputs))
            for key, each in named.items()
        }
        for path, named in signatures.items()
    }
    examples = ("a", "bc", {"question": "x", "context": "y"})
    fields = {"name": "sums", "saved_models": saved_models, "examples": examples}
    with tempfile.TemporaryDirectory() as other:  # the manifest alone
        return manifests.read_manifest(write(Path(other), "Classify", {}, {}, **fields))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A folder with two SavedModels, and its manifest."""
    folder = tmp_path_factory.mktemp("bundle")
    signatures = {
        "saved_model/1": {"serving_default": (sums, [IDS, LENGTHS]), "picky": (refuse, [IDS])},
        "saved_model_text/1": {"serving_default": (count, [TEXT])},
    }
    manifest = write_toy(folder, signatures)
    return folder, manifest, write_serving_files(Exported(folder, manifest), EXAMPLES)


def logs(folder, path):
    records = tf.data.TFRecordDataset(str(folder / path / WARM_UP))
    return [LOG.FromString(record.numpy()).predict_log.request for record in records]


def test_requests_warm_up_every_signature_that_takes_them(bundle):
    folder, _, counts = bundle
    assert counts == {path: len(logs(folder, path)) for path in counts}
    assert min(counts.values()) >= 2
    requests = logs(folder, "saved_model/1")
    request = requests[0]
    assert request.model_spec.name == "sums"
    assert request.model_spec.signature_name == "serving_default"
    inputs = {name: tf.make_ndarray(each) for name, each in request.inputs.items()}
    assert {each.dtype for each in inputs.values()} == {np.dtype("int64")}
    assert inputs["token_ids"].tolist() == [[3, 4, 1, 2]] and inputs["lengths"].tolist() == [4]
    texts = [tf.make_ndarray(each.inputs["text"]) for each in logs(folder, "saved_model_text/1")]
    assert sorted(each.tolist() for each in texts if len(each) == 1) == [[b"a"], [b"bc"]]
    loaded = tf.saved_model.load(str(folder / "saved_model_text/1")).signatures
    assert loaded["serving_default"](text=tf.constant(texts[0]))["sum"].numpy() == [2]


def test_a_batch_size_that_fails_warms_nothing_up(tmp_path):
    def few(token_ids):
        check = tf.debugging.Assert(tf.shape(token_ids)[0] < 8, ["token_ids: few rows."])
        with tf.control_dependencies([check]):
            return {"sum": tf.reduce_sum(token_ids, axis=1)}

    manifest = write_toy(tmp_path, {"saved_model/1": {"serving_default": (few, [IDS])}})
    write_serving_files(Exported(tmp_path, manifest), EXAMPLES)
    requests = logs(tmp_path, "saved_model/1")
    sizes = [len(tf.make_ndarray(each.inputs["token_ids"])) for each in requests]
    assert {*sizes} == {1, 2, 4} and sizes[:3] == [1, 1, 1]


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
    assert "--enable_per_model_batching_parameters=true" in compose


def test_the_server_knows_a_model_by_a_name_that_needs_no_quotes(tmp_path):
    signatures = {"saved_model/1": {"serving_default": (sums, [IDS, LENGTHS])}}
    manifest = dataclasses.replace(write_toy(tmp_path, signatures), name='my model: "v1" #2')
    write_serving_files(Exported(tmp_path, manifest), EXAMPLES)
    name = "my_model_v1_2"
    for file, said in {
        "models.config": f'name: "{name}"\n    base_path: "/models/{name}"',
        "compose.yaml": f"- ../saved_model:/models/{name}:ro\n",
        "README.md": f"/v1/models/{name}:predict\n",
    }.items():
        assert said in (tmp_path / "tensorflow_serving" / file).read_text()
    assert {each.model_spec.name for each in logs(tmp_path, "saved_model/1")} == {name}


def test_batches_are_padded_by_the_server(bundle):
    text = (bundle[0] / "tensorflow_serving" / "batching.config").read_text()
    parsed = text_format.Parse(text, BATCHING())
    assert parsed.pad_variable_length_inputs and parsed.max_batch_size.value == 64
    # The server wants the largest of them to be the limit.
    assert list(parsed.allowed_batch_sizes) == [1, 2, 4, 8, 16, 32, 64] == list(BATCH_SIZES)
    own = {f"{path}/1/batching_params.pbtxt" for path in ("saved_model", "saved_model_text")}
    assert {str(p.relative_to(bundle[0])) for p in bundle[0].rglob("*.pbtxt")} == own
    assert {(bundle[0] / path).read_text() for path in own} == {text}


def padded_with_zeros(token_ids):
    return {"token_ids": np.pad(token_ids, (0, 6 - len(token_ids)))}


@pytest.mark.parametrize(
    ("inputs", "examples"),
    [
        ([IDS, LENGTHS], EXAMPLES),
        ([IDS], [padded_with_zeros(each["token_ids"]) for each in EXAMPLES]),
    ],
)
def test_a_model_that_reads_the_padding_is_not_batched(inputs, examples, tmp_path):
    def total(token_ids, lengths=None):  # 0 behind a row changes nothing
        return {"sum": tf.reduce_sum(token_ids, axis=1)}

    manifest = write_toy(tmp_path, {"saved_model/1": {"serving_default": (total, inputs)}})
    write_serving_files(Exported(tmp_path, manifest), examples)
    assert not list(tmp_path.rglob("*.pbtxt"))
    assert "answered alone" in (tmp_path / "tensorflow_serving/README.md").read_text()


def test_lists_of_choices_are_not_batched(tmp_path):
    def first(choices):  # padding with the first one would change no answer, but that of others
        return {"choice": choices[:, 0]}

    choices = TensorSpec("choices", "string", ("batch", "choices"))
    manifest = write_toy(tmp_path, {"saved_model_text/1": {"serving_default": (first, [choices])}})
    manifest = dataclasses.replace(manifest, examples=({"choices": ["a", "bc"]},))
    write_serving_files(Exported(tmp_path, manifest))
    assert not list(tmp_path.rglob("*.pbtxt"))


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        ((), "this one reads numbers"),
        (("words", "characters"), "splits words by rules of Unicode"),
        (("text",), "the export left it out"),
    ],
)
def test_the_notes_say_why_no_model_takes_strings(bundle, tmp_path, roles, reason):
    folder, manifest, _ = bundle
    (tmp_path / "tokenizer.json").write_text("{}")
    files, tokenizers = manifests.describe_files(tmp_path), dict.fromkeys(roles, "tokenizer.json")
    manifest = dataclasses.replace(manifest, tokenizers=tokenizers, files=files)
    [text] = notes(folder, manifest, {"saved_model/1": "sums"}, Inputs(manifest, []), ()).values()
    assert reason in " ".join(text.split()) and "No model here takes strings" in text
    both = dict.fromkeys(manifest.saved_models, "sums")
    manifest = dataclasses.replace(manifest, tokenizers={})
    [text] = notes(folder, manifest, both, Inputs(manifest, []), ()).values()
    assert "No model here" not in text


def test_requests_of_the_notes_can_be_pasted(bundle):
    folder, *_ = bundle
    text = (folder / "tensorflow_serving/README.md").read_text()
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("curl ")]
    assert [each[-1] for each in commands] == [
        "http://localhost:8501/v1/models/sums:predict",
        "http://localhost:8501/v1/models/sums_text:predict",
    ]
    found = []
    for path, (_, _, body, _) in zip(("saved_model/1", "saved_model_text/1"), commands):
        body = json.loads(body)
        function = tf.saved_model.load(str(folder / path)).signatures[body["signature_name"]]
        specs = function.structured_input_signature[1]
        given = {name: tf.constant(v, specs[name].dtype) for name, v in body["inputs"].items()}
        found.append(function(**given)["sum"].numpy().tolist())
    assert found == [[7], [1]]  # of the shortest examples
    assert "What lies after `lengths` is not read." in text
    assert "<mask>" not in text and "U+FDD0" not in text  # its tokenizers have none


def test_a_bundle_without_saved_models_gets_no_files(bundle, tmp_path):
    manifest = dataclasses.replace(bundle[1], saved_models={})
    assert write_serving_files(Exported(tmp_path, manifest)) == {}
    assert not list(tmp_path.iterdir())

"""Weights outside a graph's file: found wherever ONNX lets them be, and read only if verified."""

import dataclasses

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from seqkeras import serving
from seqkeras.serving.external_data import external_files
from seqkeras.serving.manifest import describe_files, read_manifest, write_manifest
from tests.serving.pipelines.toys import Toy, write_bundle


def outside(name, file):
    """A tensor whose data lie in a file."""
    tensor = numpy_helper.from_array(np.ones(2, "float32"), name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="offset", value="0")
    tensor.external_data.add(key="location", value=file)
    return tensor


def constant(file):
    return helper.make_node("Constant", [], ["c"], value=outside("c", file))


def graph(nodes=(), **fields):
    return helper.make_graph([*nodes], "g", [], [], **fields)


def sparse(file):
    indices = numpy_helper.from_array(np.arange(2), "i")
    return helper.make_sparse_tensor(outside("v", file), indices, [2])


def within(attribute):
    return graph([helper.make_node("Op", [], [], value=attribute)])


FUNCTION = helper.make_function("d", "f", [], ["c"], [constant("a.bin")], [])
GRAPHS = {
    "initializer": helper.make_model(graph(initializer=[outside("w", "a.bin")])),
    "sparse initializer": helper.make_model(graph(sparse_initializer=[sparse("a.bin")])),
    "constant": helper.make_model(graph([constant("a.bin")])),
    "tensors": helper.make_model(within([outside("x", "a.bin")])),
    "subgraph": helper.make_model(within(graph([constant("a.bin")]))),
    "subgraphs": helper.make_model(within([graph([constant("a.bin")])])),
    "sparse attribute": helper.make_model(within(sparse("a.bin"))),
    "function": helper.make_model(graph(), functions=[FUNCTION]),
}


@pytest.mark.parametrize("place", GRAPHS)
def test_a_file_of_weights_is_found_wherever_a_tensor_may_be(place, tmp_path):
    (tmp_path / "g.onnx").write_bytes(GRAPHS[place].SerializeToString())
    assert external_files(tmp_path / "g.onnx") == ("a.bin",)


def test_the_files_are_those_that_onnx_writes(tmp_path):
    def model(*names):
        tensors = [numpy_helper.from_array(np.ones(3, "float32"), name) for name in names]
        return helper.make_model(graph(initializer=tensors))

    save = {"save_as_external_data": True, "size_threshold": 0}
    onnx.save(model("v", "w"), tmp_path / "many.onnx", **save, all_tensors_to_one_file=False)
    assert set(external_files(tmp_path / "many.onnx")) == {"v", "w"}
    onnx.save(model("v", "w"), tmp_path / "one.onnx", **save, location="one.bin")
    assert external_files(tmp_path / "one.onnx") == ("one.bin",)
    onnx.save(model("location", "w"), tmp_path / "inside.onnx")  # a name that is the word itself
    assert external_files(tmp_path / "inside.onnx") == ()


@pytest.mark.parametrize("content", [b"", b"x", b"nothing"])
def test_a_file_without_the_word_names_no_file(content, tmp_path):
    (tmp_path / "g.onnx").write_bytes(content)
    assert external_files(tmp_path / "g.onnx") == ()


def test_a_cut_file_is_refused(tmp_path):
    content = GRAPHS["subgraph"].SerializeToString()
    for size in range(content.index(b"location") + 8, content.index(b"a.bin") + 5):
        (tmp_path / "g.onnx").write_bytes(content[:size])
        with pytest.raises(ValueError, match="^no protobuf message: "):
            external_files(tmp_path / "g.onnx")


@pytest.fixture
def bundle(tmp_path):
    """A bundle whose graph has its weights in a file, which the manifest lists for it."""
    folder = write_bundle(tmp_path / "toy", "Embed", Toy(3).graph("pooled"))
    model = onnx.load(folder / "onnx/model.onnx")
    # Not the small ones: onnxruntime wants the axes of an operator within the file.
    save = {"save_as_external_data": True, "size_threshold": 500, "location": "weights.bin"}
    onnx.save(model, folder / "onnx/model.onnx", **save)
    name_weights(folder, "onnx/weights.bin")
    return folder


def name_weights(folder, *weights):
    manifest = read_manifest(folder)
    graphs = {"model": dataclasses.replace(manifest.graphs["model"], weights=weights)}
    manifest = dataclasses.replace(manifest, graphs=graphs, files=describe_files(folder))
    write_manifest(folder, manifest)


def test_weights_that_the_manifest_names_are_read(bundle, tmp_path):
    whole = write_bundle(tmp_path / "whole", "Embed", Toy(3).graph("pooled"))
    vectors = [serving.load(folder)("the cat").vector for folder in (bundle, whole)]
    np.testing.assert_array_equal(*vectors)


def test_weights_that_no_manifest_names_are_refused(bundle):
    name_weights(bundle)  # among the files of the bundle, and not among those of the graph
    message = (
        "onnx/model.onnx reads weights from 'weights.bin', which manifest.json does not name among "
        "its weights. Export the bundle again.$"
    )
    with pytest.raises(serving.BundleError, match=message):
        serving.load(bundle)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "./weights.bin"])
def test_a_path_that_is_not_the_one_named_is_refused(bundle, location):
    model = onnx.load(bundle / "onnx/model.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    (bundle / "onnx/model.onnx").write_bytes(model.SerializeToString())
    name_weights(bundle, "onnx/weights.bin")
    with pytest.raises(serving.BundleError, match=f"reads weights from '{location}', which"):
        serving.load(bundle)

"""A repository for Triton: its configuration is read by Triton's own protobuf."""

import onnx
import pytest

from seqkeras.serving.manifest import GraphFile, TensorSpec
from seqkeras.serving.triton import TYPES, configuration, main, write_repository
from tests.serving import toy_language_model
from tests.serving.pipelines.toys import Toy, write_bundle

text_format = pytest.importorskip("google.protobuf.text_format", reason="needs protobuf")
model_config_pb2 = pytest.importorskip(
    "tritonclient.grpc.model_config_pb2", reason="needs tritonclient and grpcio"
)


def read(folder):
    text = (folder / "config.pbtxt").read_text(encoding="utf-8")
    return text_format.Parse(text, model_config_pb2.ModelConfig())


def shape(tensor, rows):
    """The shape of the graph's tensor as Triton computes it: rows, then `reshape` or `dims`."""
    return [rows, *(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)]


@pytest.fixture
def classes(tmp_path):
    return write_bundle(
        tmp_path / "bundle", "Classify", Toy(3).graph("pooled"), {"labels": ["x", "y", "z"]}
    )


def test_the_configuration_is_that_of_the_graph(classes, tmp_path):
    folder = write_repository(classes, tmp_path / "repository", max_batch=7, threads=3)
    found = read(folder)
    assert folder == tmp_path / "repository" / found.name
    assert (found.backend, found.max_batch_size) == ("onnxruntime", 7)
    assert found.HasField("dynamic_batching")
    assert found.parameters["intra_op_thread_count"].string_value == "3"
    graph = onnx.load(folder / "1/model.onnx").graph
    for own, tensors in ((found.input, graph.input), (found.output, graph.output)):
        assert [tensor.name for tensor in own] == [tensor.name for tensor in tensors]
        for tensor, given in zip(own, tensors, strict=True):
            axes = given.type.tensor_type.shape.dim
            sizes = [axis.dim_value or -1 for axis in axes]
            assert shape(tensor, -1) == sizes
            kind = onnx.helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type).name
            assert model_config_pb2.DataType.Name(tensor.data_type) == TYPES[kind]
            assert len(tensor.dims) >= 1


def test_a_graph_without_an_axis_of_the_batch_answers_each_request_alone():
    inputs = TensorSpec("ids", "int64", ("batch", "length")), TensorSpec("size", "int64", (1,))
    graph = GraphFile("onnx/model.onnx", inputs, (TensorSpec("y", "float32", ("batch", 3)),))
    text = configuration("toy", graph, max_batch=7, threads=1)
    found = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert found.max_batch_size == 0 and not found.HasField("dynamic_batching")
    assert [[*tensor.dims] for tensor in found.input] == [[-1, -1], [1]]
    assert [[*tensor.dims] for tensor in found.output] == [[-1, 3]]


def test_what_can_not_be_written_is_one_line(classes, tmp_path, capsys):
    repository = str(tmp_path / "repository")
    assert main([str(classes), repository]) == 0
    written = capsys.readouterr().out.strip()
    assert main([str(classes), repository]) == 1
    assert capsys.readouterr().err == (
        f"python -m seqkeras.serving.triton: {written}: is there already; remove it, "
        "or name another repository.\n"
    )
    (classes / "onnx/model.onnx").write_bytes(b"x")
    assert main([str(classes), str(tmp_path / "other")]) == 1
    assert "model.onnx has 1 bytes" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    generator = toy_language_model.write_bundle(tmp_path / "generator")
    assert main([str(generator), repository]) == 1
    error = capsys.readouterr().err
    assert "no graph that answers in one call" in error and "--generate-in-graph" in error

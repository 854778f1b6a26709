import dataclasses
import re

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from seqkeras import serving
from seqkeras.serving.manifest import (
    GraphFile,
    Precision,
    describe_files,
    read_manifest,
    write_manifest,
)
from seqkeras.serving.opening import CPU, SLOWER_ON_CPU, Runtime, open_session
from seqkeras.serving.text import word_piece
from tests.serving.pipelines.toys import TOKENS, Toy, write_bundle
from tests.serving.written import model_of, specs

ONNXRUNTIME = re.escape(onnxruntime.__version__)


@pytest.fixture
def embed(tmp_path):
    """A bundle with a second precision, whose model gives twice the numbers."""
    folder = write_bundle(tmp_path / "toy", "Embed", Toy(3).graph("pooled"), {"normalize": False})
    toy = Toy(3)
    toy.W *= 2
    graph = toy.graph("pooled")
    (folder / "onnx/model.int8.onnx").write_bytes(graph.SerializeToString())
    double = GraphFile("onnx/model.int8.onnx", specs(graph.graph.input), specs(graph.graph.output))
    manifest = dataclasses.replace(
        read_manifest(folder),
        precisions={"int8": Precision({"model": double}, {})},
        files=describe_files(folder),
    )
    write_manifest(folder, manifest)
    return folder


def test_a_precision_is_one_of_the_manifests_or_float32(embed):
    vectors = [serving.load(embed, each)("the cat").vector for each in (None, "float32", "int8")]
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(vectors[2], 2 * vectors[0], rtol=1e-5)


@pytest.mark.parametrize(
    "precision, message",
    [
        ("int4", "must be one of the bundle's, float32, int8; received 'int4'."),
        (8, "must be a name; received int 8."),
    ],
)
def test_an_unknown_precision_is_refused(embed, precision, message):
    with pytest.raises(ValueError, match=f"^load: precision {re.escape(message)}$"):
        serving.load(embed, precision=precision)


def test_only_the_files_of_the_precision_are_needed(embed):
    (embed / "onnx/model.int8.onnx").unlink()
    assert serving.load(embed)("the cat").vector.any()
    with pytest.raises(serving.BundleError, match="onnx/model.int8.onnx is missing. Copy or expo"):
        serving.load(embed, precision="int8")


@pytest.mark.parametrize("precision", [None, "int8"])
def test_graphs_that_the_pipeline_does_not_open_are_not_needed(embed, precision):
    manifest = read_manifest(embed)
    for file in ("generate.onnx", "weights.bin"):
        (embed / "onnx" / file).write_bytes(b"for hosts that are not Python")
    generate = GraphFile("onnx/generate.onnx", (), (), ("onnx/weights.bin",))
    graphs = manifest.graphs | {"generate": generate}
    manifest = dataclasses.replace(manifest, graphs=graphs, files=describe_files(embed))
    write_manifest(embed, manifest)
    for file in ("generate.onnx", "weights.bin"):
        (embed / "onnx" / file).unlink()
    assert serving.load(embed, precision)("the cat").vector.any()


@pytest.mark.parametrize(
    "providers, message",
    [
        ("CUDA", "received 'CUDA'"),
        (["CPU", "TensorrtExecutionProvider"], "received 'TensorrtExecutionProvider'"),
        (["coreml"], "received 'coreml'"),
        ([7], "received int 7"),
        (["CPU", ("CUDA", {"device_id": 1})], "received tuple ('CUDA', {'device_id': 1})"),
        ([("CPU",)], "received tuple ('CPU',)"),
    ],
)
def test_a_provider_that_onnxruntime_has_not_is_refused_with_those_it_has(
    embed, monkeypatch, providers, message
):
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["XnnpackExecutionProvider", CPU]
    )
    with pytest.raises(
        ValueError,
        match=f"^load: providers must be of this onnxruntime {ONNXRUNTIME}, which has Xnnpack, "
        f"CPU; {re.escape(message)}. Other builds of onnxruntime have others.$",
    ):
        serving.load(embed, providers=providers)


@pytest.mark.parametrize(
    "given, expected",
    [
        (None, [CPU]),
        ("CPU", [CPU]),
        (["cuda"], ["CUDAExecutionProvider", CPU]),
        (
            ["CPUExecutionProvider", "CUDA", "XNNPACK", "cuda"],
            ["CUDAExecutionProvider", "XnnpackExecutionProvider", CPU],
        ),
        (
            [("cuda", {"device_id": 1}), ["XNNPACK", {}], ("CPU", {})],
            [("CUDAExecutionProvider", {"device_id": 1}), "XnnpackExecutionProvider", CPU],
        ),
    ],
)
def test_providers_go_to_onnxruntime_with_the_cpu_behind_them(embed, monkeypatch, given, expected):
    here = ["CUDAExecutionProvider", "XnnpackExecutionProvider", CPU]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: here)
    received, session = [], onnxruntime.InferenceSession

    def inference_session(*arguments, providers, disabled_optimizers):
        received.append((providers, disabled_optimizers))
        opened = session(*arguments, providers=[CPU])
        opened.get_providers = lambda: [
            each[0] if isinstance(each, tuple) else each for each in providers
        ]
        return opened

    monkeypatch.setattr(onnxruntime, "InferenceSession", inference_session)
    serving.load(embed, providers=given)
    assert received == [(expected, SLOWER_ON_CPU if expected == [CPU] else ())]


def test_options_of_the_cpu_are_refused(embed):
    with pytest.raises(ValueError, match="^load: providers: CPU takes no options; received dict"):
        serving.load(embed, providers=[("CPU", {"arena_extend_strategy": "kNextPowerOfTwo"})])


def test_a_provider_that_does_not_start_is_refused(embed, monkeypatch):
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", CPU]
    )
    session = onnxruntime.InferenceSession
    monkeypatch.setattr(
        onnxruntime,
        "InferenceSession",
        lambda *arguments, providers, **others: session(*arguments, providers=[CPU]),
    )
    with pytest.raises(
        serving.BundleError,
        match="has CUDAExecutionProvider and can not start it. Are its driver and libraries inst",
    ):
        serving.load(embed, providers="CUDA")


def test_what_is_no_list_of_providers_is_refused(embed):
    message = "^load: providers must be a name, or a list of names; received int 5.$"
    with pytest.raises(ValueError, match=message):
        serving.load(embed, providers=5)


def test_a_failure_of_onnxruntime_is_one_line(embed, tmp_path):
    longer = word_piece([*TOKENS, "zebra"])
    longer.to_file(embed / "tokenizer/text.json")
    manifest = dataclasses.replace(read_manifest(embed), files=describe_files(embed))
    write_manifest(embed, manifest)
    message = (
        rf"model.onnx: onnxruntime {ONNXRUNTIME} can not run it: .*indices element out of data .* "
        "If ids are out of its bounds, the tokenizer is another model's: export the bundle again; "
    )
    embed = serving.load(embed)
    with pytest.raises(serving.BundleError, match=message) as caught:
        embed("the zebra")
    assert "\n" not in str(caught.value)
    assert embed("the cat").vector.any()


def test_threads_go_to_onnxruntime(embed):
    session = open_session(
        embed,
        read_manifest(embed),
        "model",
        Runtime(threads=3),
        {"token_ids", "lengths"},
        {"output"},
        optional={"segment_ids"},
    )
    assert session.get_session_options().intra_op_num_threads == 3


@pytest.mark.parametrize(
    "version, plans", [("1.17.0", False), ("1.18.1", False), ("1.19.0", True), ("2.0.0rc1", True)]
)
def test_memory_is_planned_where_a_second_run_gives_the_same(monkeypatch, version, plans):
    monkeypatch.setattr(onnxruntime, "__version__", version)
    assert Runtime().session_options().enable_mem_pattern == plans


def test_sums_of_the_largest_whole_numbers_are_exact():
    kernel = numpy_helper.from_array(np.full((64, 16), 127, "int8"), "kernel")
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "kernel"], ["sums"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [None, 64])],
        [helper.make_tensor_value_info("sums", TensorProto.INT32, [None, 16])],
        [kernel],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = Runtime().session(model.SerializeToString())
    [sums] = session.run(None, {"x": np.full((3, 64), 255, "uint8")})
    np.testing.assert_array_equal(sums, np.full((3, 16), 64 * 255 * 127))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", 1025])
def test_a_wrong_number_of_threads_is_refused(embed, threads):
    with pytest.raises(ValueError, match="^load: threads must be a whole number from 1 to 1024; "):
        serving.load(embed, threads=threads)


def test_an_input_that_is_not_optional_is_missed(embed):
    with pytest.raises(
        serving.BundleError, match="it has an input segment_ids, which the pipeline does"
    ):
        open_session(
            embed, read_manifest(embed), "model", Runtime(), {"token_ids", "lengths"}, {"output"}
        )


def test_an_output_of_another_size_than_the_graph_declares_is_refused(tmp_path):
    graph = model_of(
        """
        model (int64[batch,length] token_ids) => (float[batch,3] output) {
            numbers = Cast <to = 1> (token_ids)
            mean = ReduceMean (numbers, last)
            sizes = Shape (numbers)
            batch = Slice (sizes, zero, one)
            wider = Concat <axis = 0> (batch, five)
            output = Expand (mean, wider)
        }
        """,
        last=np.int64([-1]),
        zero=np.int64([0]),
        one=np.int64([1]),
        five=np.int64([5]),
    )
    embed = serving.load(write_bundle(tmp_path / "toy", "Embed", graph))
    message = r"model.onnx: it gave output of shape \(1, 5\), and declares 3 on axis 1\. "
    with pytest.raises(serving.BundleError, match=message):
        embed("the cat")

import dataclasses
import re

import numpy as np
import onnx
import onnxruntime
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import (
    GraphFile,
    Precision,
    describe_files,
    read_manifest,
    write_manifest,
)
from seqkeras.serving.opening import CPU, SLOWER_ON_CPU, Runtime, open_session
from tests.serving.pipelines.toys import Toy, write_bundle
from tests.serving.written import model_of, specs

CUDA, XNNPACK = "CUDAExecutionProvider", "XnnpackExecutionProvider"
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
        ("CUDA", "'CUDA'"),
        (["CPU", "TensorrtExecutionProvider"], "'TensorrtExecutionProvider'"),
        ([7], "int 7"),
        (["CPU", ("CUDA", {"device_id": 1})], "tuple ('CUDA', {'device_id': 1})"),
        ([("CPU",)], "tuple ('CPU',)"),
    ],
)
def test_a_provider_that_onnxruntime_has_not_is_refused_with_those_it_has(
    embed, monkeypatch, providers, message
):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [XNNPACK, CPU])
    message = (
        f"^load: providers must be of this onnxruntime {ONNXRUNTIME}, which has Xnnpack, CPU; "
        f"received {re.escape(message)}. Other builds of onnxruntime have others.$"
    )
    with pytest.raises(ValueError, match=message):
        serving.load(embed, providers=providers)


@pytest.mark.parametrize(
    "given, expected",
    [
        (None, [CPU]),
        ("CPU", [CPU]),
        (["cuda"], [CUDA, CPU]),
        (["CPUExecutionProvider", "CUDA", "XNNPACK", "cuda"], [CUDA, XNNPACK, CPU]),
        (
            [("cuda", {"device_id": 1}), ["XNNPACK", {}], ("CPU", {})],
            [(CUDA, {"device_id": 1}), XNNPACK, CPU],
        ),
    ],
)
def test_providers_go_to_onnxruntime_with_the_cpu_behind_them(embed, monkeypatch, given, expected):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, XNNPACK, CPU])
    received, session = [], onnxruntime.InferenceSession

    def inference_session(*arguments, providers, disabled_optimizers):
        received.append((providers, disabled_optimizers))
        opened = session(*arguments, providers=[CPU])
        names = [each[0] if isinstance(each, tuple) else each for each in providers]
        opened.get_providers = lambda: names
        return opened

    monkeypatch.setattr(onnxruntime, "InferenceSession", inference_session)
    serving.load(embed, providers=given)
    assert received == [(expected, SLOWER_ON_CPU if expected == [CPU] else ())]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"precision": "int4"}, "precision must be one of the bundle's, float32, int8; received "),
        ({"precision": 8}, "precision must be a name; received int 8."),
        *(
            ({"threads": threads}, "threads must be a whole number from 1 to 1024; received")
            for threads in (0, 1.5, "2", 1025)
        ),
        ({"providers": 5}, "providers must be a name, or a list of names; received int 5."),
        ({"providers": [("CPU", {"a": 1})]}, "providers: CPU takes no options; received dict"),
    ],
)
def test_wrong_options_are_refused(embed, options, message):
    with pytest.raises(ValueError, match=f"^load: {re.escape(message)}"):
        serving.load(embed, **options)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "a\ud800b"], ids=["long", "nul", "surrogate"])
def test_a_path_that_no_folder_can_have_is_refused_in_one_short_line(tmp_path, name):
    with pytest.raises(ValueError, match="^load: path must be a bundle's folder; received bytes"):
        serving.load(b"/tmp")
    message = "there is no such folder; expected a bu"
    with pytest.raises(serving.BundleError, match=message) as caught:
        serving.load(tmp_path / name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_a_pipeline_that_is_not_known_is_refused_with_those_that_are(tmp_path):
    folder = write_bundle(tmp_path / "toy", "Dream", Toy(1).graph("pooled"))
    known = "Translate, Generate, Classify, Tag, Answer, Choose, Embed, FillMask, Forecast"
    with pytest.raises(serving.BundleError, match=f"'Dream'; this seqkeras-serving has {known}. U"):
        serving.load(folder)


def test_a_provider_that_does_not_start_is_refused(embed, monkeypatch):
    session = onnxruntime.InferenceSession

    def on_cpu(*arguments, providers, **others):
        return session(*arguments, providers=[CPU])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "InferenceSession", on_cpu)
    message = "has CUDAExecutionProvider and can not start it. Are its driver and libraries inst"
    with pytest.raises(serving.BundleError, match=message):
        serving.load(embed, providers="CUDA")


def test_threads_go_to_onnxruntime_and_an_input_that_is_not_optional_is_missed(embed):
    fed = {"token_ids", "lengths"}
    given = embed, read_manifest(embed), "model"
    session = open_session(*given, Runtime(threads=3), fed, {"output"}, optional={"segment_ids"})
    assert session.get_session_options().intra_op_num_threads == 3
    message = "it has an input segment_ids, which the pipeline does"
    with pytest.raises(serving.BundleError, match=message):
        open_session(*given, Runtime(), fed, {"output"})


@pytest.mark.parametrize(
    "version, plans", [("1.17.0", False), ("1.18.1", False), ("1.19.0", True), ("2.0.0rc1", True)]
)
def test_memory_is_planned_where_a_second_run_gives_the_same(monkeypatch, version, plans):
    monkeypatch.setattr(onnxruntime, "__version__", version)
    assert Runtime().session_options().enable_mem_pattern == plans


def test_an_output_of_another_size_than_the_graph_declares_is_refused(tmp_path):
    graph = model_of(
        """
        model (int64[batch,length] token_ids) => (float[batch,3] output) {
            numbers = Cast <to = 1> (token_ids)
            mean = ReduceMean (numbers, last)
            sizes = Shape (numbers)
            batch = Slice (sizes, axis_0, axis_1)
            wider = Concat <axis = 0> (batch, five)
            output = Expand (mean, wider)
        }
        """,
        five=np.int64([5]),
    )
    embed = serving.load(write_bundle(tmp_path / "toy", "Embed", graph))
    message = r"model.onnx: it gave output of shape \(1, 5\), and declares 3 on axis 1\. "
    with pytest.raises(serving.BundleError, match=message):
        embed("the cat")


SUM = """model (int64[batch,length] token_ids, int64[batch] lengths) =>
    (float[batch,length,8] output) {
    first = Gather (first_table, token_ids)
    second = Gather (second_table, token_ids)
    sum = Add (first, second)
    output = LayerNormalization <axis = -1> (sum, scale, shift)
}"""


def opened_nodes(bundle, path):
    """The operators of a bundle's graph as onnxruntime runs it."""

    class Written(Runtime):
        def session_options(self):
            options = super().session_options()
            options.optimized_model_filepath = str(path)
            return options

    open_session(
        bundle, read_manifest(bundle), "model", Written(), {"token_ids", "lengths"}, {"output"}
    )
    return [node.op_type for node in onnx.load(path).graph.node]


def test_a_sum_and_what_normalises_it_stay_two_nodes_on_a_cpu(tmp_path, monkeypatch):
    ones = np.ones((5, 8), np.float32)
    graph = model_of(SUM, first_table=ones, second_table=ones, scale=ones[0], shift=ones[0])
    bundle = write_bundle(tmp_path / "toy", "Embed", graph)
    apart = ["Gather", "Gather", "Add", "LayerNormalization"]
    assert opened_nodes(bundle, tmp_path / "optimized.onnx") == apart
    monkeypatch.setattr("seqkeras.serving.opening.SLOWER_ON_CPU", ())  # the two become one
    assert opened_nodes(bundle, tmp_path / "fused.onnx") == [*apart[:2], "SkipLayerNormalization"]

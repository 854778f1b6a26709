"""Smoke runs of the benchmarks of serving, and the limit that they are held against."""

import sys
import types
from importlib.util import find_spec

import onnx
import pytest
from keras import ops

from benchmarks import encoder_bundles, encoders, harness, limit, roofline, startup
from seqkeras.export.families.shapes import infer_outputs
from seqkeras.export.onnx_graphs import convert
from seqkeras.pretrained import load_hugging_face, save_hugging_face
from seqkeras.serving.manifest import TensorSpec
from tests.benchmarks.test_benchmarks import smoke_rows

SIZES = {"hidden_dim": 5, "num_layers": 3, "feed_forward_dim": 7}


@pytest.fixture
def without_optimum(monkeypatch):
    """The rival is our own graph of the weights that it is given."""

    def write(*arguments, python):
        folder, file = arguments[-2:]
        bert = load_hugging_face(folder).encoder

        def function(input_ids, attention_mask, token_type_ids):
            inputs = {"token_ids": input_ids, "segment_ids": token_type_ids}
            inputs["lengths"] = ops.sum(attention_mask, axis=1)
            return {"last_hidden_state": bert(inputs)["hidden"]}

        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [TensorSpec(name, "int64", ("batch", "length")) for name in names]
        graph = convert(function, inputs, infer_outputs(function, inputs), "model")
        onnx.save(graph.whole(), file)

    monkeypatch.setattr(harness, "run_python", write)


def test_startup_says_what_it_takes_until_the_first_answer(capsys, tmp_path):
    rows = smoke_rows(startup, capsys, tmp_path / "rows.json")
    assert set(rows) == {
        "minilm import serving vs 0.3 s",
        *(
            f"minilm {figure}"
            for precision in ("float32", "int8", "int8-embedding")
            for figure in (
                f"first answer {precision} vs 1 s",
                f"memory beside the weights {precision} vs 120 MB",
            )
        ),
        "minilm ONNX int8 vs float32",
        "minilm ONNX int8-embedding vs 25 MB",
    }


def test_limit_tells_the_fraction_of_every_case(capsys, tmp_path):
    rows = smoke_rows(limit, capsys, tmp_path / "rows.json", "--only", "minilm")
    assert set(rows) == {f"minilm {each} b2 t7 vs the limit" for each in ("float32", "int8")}


def test_limit_counts_no_padding_as_work(monkeypatch, tmp_path):
    given = []
    session = types.SimpleNamespace(run=lambda names, inputs: given.append(inputs))
    monkeypatch.setattr(encoders, "open_graph", lambda bundle, runtime: session)
    monkeypatch.setattr(encoders, "QUICK_SHAPES", ((5, 11),))
    for case in limit._cases("minilm", tmp_path, quick=True):
        assert case.passes == [roofline.encoder(encoder_bundles.QUICK, 5, 11, case.precision)]
        case.open(None)(0)
    assert len(given) == 2
    for inputs in given:
        assert inputs["lengths"].tolist() == [11] * 5
        assert inputs["token_ids"].shape == (5, 11) and inputs["token_ids"].all()


def test_a_profile_is_that_of_the_warm_run():
    def event(ts, name="node_kernel_time", cat="Node"):
        return {"ts": ts, "name": name, "cat": cat}

    nodes = [event(ts) for ts in (20, 3, 30, 5)]
    others = [event(40, cat="Session"), event(50, "node_fence_before")]
    assert limit._warm_nodes([*nodes[:2], *others, *nodes[2:]]) == [event(20), event(30)]


def test_limit_profiles_what_is_far_from_it(monkeypatch, capsys):
    monkeypatch.setattr(limit, "GOAL", 1e9)
    assert limit.main(["--quick", "--only", "transformer", "--profile"]) == 0
    printed = capsys.readouterr().out
    title = "transformer float32 beam 4 b1"
    assert f"{title}  nodes run  of the time\n" in printed


def test_encoders_without_optimum_are_one_line(monkeypatch, capsys, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: no optimum' >&2\nexit 1\n")
    python.chmod(0o755)
    assert encoders.main(["--quick", "--only", "minilm", "--optimum", str(python)]) == 1
    assert capsys.readouterr().err == "python -m benchmarks.encoders: ImportError: no optimum\n"


@pytest.mark.skipif(find_spec("optimum") is not None, reason="optimum is here")
def test_a_missing_optimum_is_one_line_and_a_way_to_get_it(capsys):
    assert encoders.main(["--quick", "--only", "minilm", "--optimum", sys.executable]) == 1
    assert capsys.readouterr().err == (
        "python -m benchmarks.encoders: ImportError: optimum.exporters.onnx is not installed; "
        "pip install -r benchmarks/requirements-optimum.txt in an environment of its own, whose "
        "interpreter --optimum PYTHON names\n"
    )


def test_encoders_are_compared_with_another_graph_of_the_same_weights(
    without_optimum, capsys, tmp_path
):
    rows = smoke_rows(encoders, capsys, tmp_path / "rows.json", "--only", "minilm")
    assert set(rows) == {
        *(
            f"minilm {each} b2 t7 vs onnxruntime.transformers"
            for each in ("float32", "int8", "int8-embedding")
        ),
        "minilm float32 64 texts t8…128 vs one batch",
    }


def test_encoders_are_timed_only_where_they_agree(without_optimum, monkeypatch, capsys):
    monkeypatch.setattr(encoders, "TOLERANCE", -1.0)
    assert encoders.main(["--quick", "--only", "minilm"]) == 1
    assert "minilm b2 t7: the graphs do not agree." in capsys.readouterr().err


def test_the_rival_is_a_fused_graph(tmp_path):
    pytest.importorskip(
        "optimum.exporters.onnx", reason="needs benchmarks/requirements-optimum.txt"
    )
    model = encoder_bundles.make_model("minilm", quick=True)
    save_hugging_face(model, tmp_path / "bert")
    paths = [tmp_path / "bert", tmp_path / "fused.onnx"]
    harness.run_python("-m", "benchmarks.fused_model", *paths)
    nodes = [node.op_type for node in onnx.load(tmp_path / "fused.onnx").graph.node]
    for each in ("Attention", "BiasGelu"):
        assert nodes.count(each) == 2
    assert nodes.count("SkipLayerNormalization") == 4
    assert nodes.count("EmbedLayerNormalization") == 1


def test_the_work_of_an_encoder_is_that_of_its_products():
    works = roofline.encoder(SIZES, batch_size=2, length=11, dtype="int8")
    products = [5 * 15, 5 * 5, 5 * 7, 7 * 5]
    scores_and_contexts = 2 * 2 * 11 * 11 * 5 * 2  # additions too, for two rows
    assert sum(each.count * each.operations for each in works) == 3 * (
        2 * 22 * sum(products) + scores_and_contexts
    )
    keys_and_values = 2 * 2 * 11 * 5 * 4  # in float32
    assert roofline.working_set([works]) == 3 * (sum(products) + keys_and_values)


def test_generation_reads_the_weights_in_every_step():
    passes = roofline.generation(
        SIZES, vocab_size=13, batch_size=2, num_beams=4, source=3, target=2, dtype="float32"
    )
    assert len(passes) == 3  # the encoder's, then two steps
    weights = 3 * (25 * (3 + 1 + 1 + 1) + 35 + 35) + 5 * 13
    for works, rows, past in zip(passes[1:], (2, 8), (1, 2)):
        caches = 3 * 2 * 5 * (rows * past + 2 * 3)
        assert sum(each.count * each.size for each in works) == 4 * (weights + caches)
        products = 2 * rows * weights
        attended = 3 * 4 * rows * 5 * (past + 3)
        assert sum(each.count * each.operations for each in works) == products + attended


def test_each_operation_waits_for_the_slower_of_its_two_limits():
    multiplied = roofline.Work(count=3, operations=100, size=10, dtype="int8")
    read = roofline.Work(count=2, operations=10, size=60)
    rates = {"float32": 10.0, "int8": 50.0}
    assert roofline.limit([[multiplied], [read]], rates, read_rate=20.0) == 3 * 2 + 2 * 3


def test_a_process_that_fails_is_the_last_line_of_its_error():
    assert harness.run_python("-c", "print('seen')") == "seen\n"
    with pytest.raises(ValueError, match="^KeyError: 'none'$"):
        harness.run_python("-c", "{}['none']")

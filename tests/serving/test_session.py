import dataclasses
import re

import numpy as np
import onnx
import pytest

from seqkeras.serving.manifest import BundleError, TensorSpec, describe_files, read_manifest
from seqkeras.serving.opening import Runtime
from seqkeras.serving.session import EncoderDecoder
from seqkeras.serving.text import BOS, pad
from tests.serving.toy_bundle import SOURCE, TARGET


@pytest.fixture(scope="module")
def graphs(shared_bundle):
    return EncoderDecoder(shared_bundle, read_manifest(shared_bundle), Runtime(threads=1))


def encode(graphs, *texts):
    return graphs.encode(*pad([SOURCE.encode(text) for text in texts]))


def test_no_more_is_computed_than_there_is_and_than_is_asked_for(graphs):
    candidates, _ = graphs.step(np.array([[BOS]]), np.array([[0]]), 99, encode(graphs, "up|a"))
    assert candidates.attention_weights is None
    assert candidates.token_ids.shape == (1, 1, len(TARGET))


def test_beams_share_what_their_source_holds(graphs):
    texts = ("up|a", "up|bad", "down|cab")
    state = encode(graphs, *texts)
    first = np.array([[0, 0], [2, 2]])  # two beams each; the second source has left
    _, state = graphs.step(np.full((2, 2), BOS), first, 1, state)
    assert state.source["keys"].shape[:2] == (2, 8)
    assert state.beam["memory"].shape[:2] == (2, 2)
    np.testing.assert_array_equal(state.source["lengths"], [4, 8])


def with_graph(manifest, role, **changes):
    graph = dataclasses.replace(manifest.graphs[role], **changes)
    return dataclasses.replace(manifest, graphs=manifest.graphs | {role: graph})


def refused(bundle, message):
    return pytest.raises(BundleError, match=rf"^{re.escape(str(bundle))}: .*{message}")


def test_a_graph_that_onnxruntime_can_not_open_is_refused(bundle):
    model = onnx.load(bundle / "onnx/encoder.onnx")
    model.graph.node[0].op_type = "OneWarm"
    onnx.save(model, bundle / "onnx/encoder.onnx")
    with refused(bundle, "onnx/encoder.onnx: .* can not open it: .*OneWarm"):
        EncoderDecoder(bundle, read_manifest(bundle))
    (bundle / "onnx/encoder.onnx").write_bytes(b"no graph")
    manifest = dataclasses.replace(read_manifest(bundle), files=describe_files(bundle))
    with refused(bundle, r"onnx/encoder.onnx: onnxruntime [\d.]+ can not open it: .*[Pp]rotobuf"):
        EncoderDecoder(bundle, manifest)


def test_a_graph_that_differs_from_the_manifest_is_refused_with_every_difference(bundle):
    manifest = read_manifest(bundle)
    inputs = (
        TensorSpec("token_ids", "int32", ("batch", "source_length")),
        TensorSpec("length", "int64", ("batch",)),
    )
    with refused(
        bundle,
        "onnx/encoder.onnx is not the encoder graph expected: "
        "input length is in the manifest only; input lengths is in the graph only; "
        r"input token_ids is int64 \(batch, source_length\), not int32 \(batch, source_length\); "
        "it lacks lengths; it has an input length, which the pipeline does not feed. Export the "
        "bundle again",
    ):
        EncoderDecoder(bundle, with_graph(manifest, "encoder", inputs=inputs))


@pytest.mark.parametrize(
    "size, message",
    [
        (13, r"logits is float32 \(batch, beam, 11\), not float32 \(batch, beam, 13\)"),
        ("vocab", "the size of the vocabulary as the last axis of logits"),
    ],
)
def test_another_size_of_an_axis_is_refused(bundle, size, message):
    manifest = read_manifest(bundle)
    outputs = tuple(
        dataclasses.replace(spec, shape=("batch", "beam", size)) if spec.name == "logits" else spec
        for spec in manifest.graphs["decoder_step"].outputs
    )
    with refused(bundle, message):
        EncoderDecoder(bundle, with_graph(manifest, "decoder_step", outputs=outputs))

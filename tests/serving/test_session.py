import dataclasses
import re

import onnx
import pytest

from seqkeras.serving.manifest import (
    BundleError,
    StateEntry,
    TensorSpec,
    describe_files,
    read_manifest,
)
from seqkeras.serving.session import EncoderDecoder


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


def test_a_state_that_a_graph_lacks_is_refused(bundle):
    manifest = read_manifest(bundle)
    state = (*manifest.state, StateEntry("more", "beam"))
    with refused(bundle, "it lacks more; it lacks next_more"):
        EncoderDecoder(bundle, dataclasses.replace(manifest, state=state))


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

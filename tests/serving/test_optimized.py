"""What onnxruntime makes of a graph when it is opened."""

import numpy as np
import onnx

from seqkeras.serving.manifest import read_manifest
from seqkeras.serving.opening import Runtime, open_session
from tests.serving.pipelines.toys import write_bundle
from tests.serving.written import model_of

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

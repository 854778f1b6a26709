"""float16, in the arithmetic of float16 and not of a CPU that has none."""

import functools

import numpy as np
import pytest
from onnx import TensorProto

from seqkeras.export.families.decoders import encoder_decoder_graphs
from seqkeras.export.graph import attributes_of
from seqkeras.export.half_precision import to_float16
from seqkeras.models import Transformer
from seqkeras.values import BANNED_LOGIT
from tests.arrays import built, floats
from tests.export.running import evaluate, graphs_of
from tests.export.test_quantize import inputs_of, relative
from tests.export.written import graph

B, S, V = 3, 7, 61


@functools.cache
def portable():
    """The float32 graphs of a Transformer, in operators that the reference evaluator knows."""
    model = built(Transformer(V, V, 12, 1, 3, 17, max_length=600))
    return graphs_of(encoder_decoder_graphs(model), portable=True)


@pytest.mark.parametrize("role", ["encoder", "decoder_step"])
def test_true_float16_is_near_float32_even_far_out_and_where_all_is_padding(role):
    graphs = portable()
    made = to_float16(graphs[role])
    assert {value.dtype for value in made.weights.values()} == {np.dtype("float16")}
    # A position is the length of the cache: an angle of 531 radians is none in float16.
    inputs = inputs_of(graphs[role], past=531)
    if role == "encoder":
        inputs["lengths"] = np.array([S, 0, 5])
    else:
        inputs["source_mask"][1] = False
    # The reference evaluator computes in float16; onnxruntime's CPU would compute in float32.
    expected, actual = evaluate(graphs[role], inputs), evaluate(made, inputs)
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype
        if name not in ("candidate_ids", "candidate_log_probs"):
            assert np.isfinite(actual[name]).all()
            allowed = value > BANNED_LOGIT / 2
            assert relative(actual[name][allowed], value[allowed]) < 0.004
    if role == "decoder_step":
        new = [each["next_key_0"][:, :, -1] for each in (actual, expected)]
        assert relative(*new) < 0.002


def test_no_number_becomes_infinite_in_float16_and_no_epsilon_zero():
    options = {"num_heads": 2, "mask_filter_value": -1e30}
    weights = {"kernel": floats(32, 96), "bias": floats(96)}
    written = graph(
        [
            ("Cast", ["padding_ids"], ["padding"], {"to": TensorProto.INT32}),
            ("Attention", ["x", "kernel", "bias", "padding"], ["context"], options),
            ("Add", ["context", "tiny"], ["sum"], {}),
            ("Mul", ["sum", "huge"], ["y"], {}),
        ],
        {"x": [B, S, 32], "padding_ids": [B, S]},
        {"y": [B, S, 32]},
        weights | {"tiny": np.float32(1e-12), "huge": np.float32(-1e9)},
    )
    made = to_float16(written)
    [attention] = [node for node in made.nodes if node.op_type == "Attention"]
    assert -65504 < attributes_of(attention)["mask_filter_value"] < -1e4
    assert 0 < made.constants["tiny/float16"] < 1e-6
    assert -65504 < made.constants["huge/float16"] < -1e4

"""Attention, layer normalisation and GELU against the test vectors of the ONNX operators.

Those of the recurrent operators are in tests/seqkeras/recurrent/test_onnx_vectors.py.
"""

import json

import numpy as np
import pytest

from seqkeras import composites
from tests.arrays import close
from tests.conftest import public_data

ATTENTION = [
    "attention_3d",
    "attention_3d_causal",
    "attention_4d",
    "attention_4d_attn_mask_bool",
    "attention_4d_causal",
    "attention_4d_scaled",
]
LAYER_NORM = ["layer_normalization_default_axis", "layer_normalization_3d_axis_negative_1_epsilon"]
GELU = ["gelu_default_1", "gelu_default_2", "gelu_tanh_1", "gelu_tanh_2"]
WITHOUT_COUNTERPART = {
    "attention_3d_attn_mask": "the mask is added to the scores; ours are booleans",
    "attention_4d_attn_mask": "the mask is added to the scores; ours are booleans",
}


def read(name):
    """The attributes of a case, and its arrays by name."""
    case = json.loads(public_data("onnx-op-vectors/cases.json").read_text())[name]
    with np.load(public_data(f"onnx-op-vectors/{name}.npz")) as file:
        return case["attributes"], dict(file)


def heads(array, number):
    """(B, T, N H) as (B, N, T, H); with an axis of heads already, as it is."""
    if array.ndim == 4:
        return array
    return array.reshape(*array.shape[:2], number, -1).swapaxes(1, 2)


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_gives_the_vectors_of_onnx(name):
    attributes, arrays = read(name)
    number = attributes.get("q_num_heads")
    query, key, value, expected = (
        heads(arrays[each], number) for each in ("in_Q", "in_K", "in_V", "out_Y")
    )
    causal, mask = bool(attributes.get("is_causal")), arrays.get("in_attn_mask")
    if causal:  # ONNX has the first query at the first key: nothing attends to the keys behind
        key, value = (each[:, :, : query.shape[2]] for each in (key, value))
    actual = composites.attention(
        query,
        key,
        value,
        None if mask is None else mask[None, None],
        causal=causal,
        scale=attributes.get("scale"),
    )
    close(actual, expected)


@pytest.mark.parametrize("name", LAYER_NORM)
def test_layer_norm_gives_the_vectors_of_onnx(name):
    attributes, arrays = read(name)
    actual = composites.layer_norm(
        *(arrays[each] for each in ("in_X", "in_W", "in_B")),
        epsilon=attributes.get("epsilon", 1e-5),  # ONNX's default
    )
    close(actual, arrays["out_Y"])


@pytest.mark.parametrize("name", GELU)
def test_gelu_gives_the_vectors_of_onnx(name):
    attributes, arrays = read(name)
    approximate = attributes.get("approximate") == "tanh"
    close(composites.gelu(arrays["in_x"], approximate=approximate), arrays["out_y"])


def test_every_vector_of_these_operators_is_used_or_has_a_reason():
    cases = json.loads(public_data("onnx-op-vectors/cases.json").read_text())
    operators = {"Attention", "LayerNormalization", "Gelu"}
    found = {name for name, case in cases.items() if case["op"] in operators}
    assert found == {*ATTENTION, *LAYER_NORM, *GELU, *WITHOUT_COUNTERPART}

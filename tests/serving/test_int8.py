"""Int8 products are exact on every processor, by the case that tells processors apart."""

import base64
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from seqkeras.serving import int8, opening
from seqkeras.serving.opening import EXACT_INT8, Runtime
from tests.conftest import CHECKOUT


def product():
    values = [
        helper.make_tensor_value_info(name, kind, ["n", 4])
        for name, kind in (("x", TensorProto.UINT8), ("y", TensorProto.INT32))
    ]
    weights = helper.make_tensor("w", TensorProto.INT8, [4, 4], 16 * b"\x7f", raw=True)
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "int8", values[:1], values[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=4)


def run(options):
    session = onnxruntime.InferenceSession(
        int8.PRODUCT, options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": np.full((3, 4), 255, np.uint8)})[0]


def test_every_host_has_the_bytes_that_the_library_writes():
    model = product()
    onnx.checker.check_model(model)
    assert model.SerializeToString() == int8.PRODUCT
    text = (CHECKOUT / "serving/javascript/src/int8.js").read_text(encoding="utf-8")
    parts = re.findall(r'"([A-Za-z0-9+/=]{20,})"', text)
    assert base64.b64decode("".join(parts)) == int8.PRODUCT
    text = (CHECKOUT / "serving/cpp/bundle.cpp").read_text(encoding="utf-8")
    [numbers] = re.findall(r"kProduct\[\] = \{(.*?)\}", text, re.DOTALL)
    assert bytes(int(number, 16) for number in numbers.split(",")) == int8.PRODUCT


def test_products_are_exact_as_sessions_are_opened():
    np.testing.assert_array_equal(
        run(Runtime(threads=1).session_options()), np.full((3, 4), 129_540)
    )


def test_the_probe_says_what_the_product_of_a_plain_session_says():
    found = run(onnxruntime.SessionOptions())
    assert int8.overflows() == bool((found != 129_540).any())
    assert set(found.ravel().tolist()) <= {129_540, 65_534}


@pytest.mark.parametrize("overflows", [True, False])
def test_the_exact_kernel_is_asked_for_only_where_it_is_needed(monkeypatch, overflows):
    monkeypatch.setattr(opening, "overflows", lambda: overflows)
    options = Runtime().session_options()
    if overflows:
        assert options.get_session_config_entry(EXACT_INT8) == "1"
    else:
        with pytest.raises(RuntimeError, match="does not have configuration"):
            options.get_session_config_entry(EXACT_INT8)
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"

"""Sizes of tensors: right where they are said, and said where they are known."""

import keras
import onnx
import pytest
import sympy
from keras import ops
from onnx import TensorProto, helper

from seqkeras.attention import RestrictedSelfAttention
from seqkeras.export import symbolic_shapes
from seqkeras.export.symbolic_shapes import infer_shapes, without_contradicted
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import floats, randomize, right_padded
from tests.conftest import others_long
from tests.export.running import converted, require_true_sizes
from tests.export.test_single_pass import agree, exported


def sizes(model):
    """Name -> sizes of the tensors of a model."""
    values = [*model.graph.value_info, *model.graph.output]
    return {
        value.name: tuple(d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim)
        for value in values
    }


def and_of(one, other):
    """A model of an And of two tensors of booleans."""
    shapes = {"one": one, "other": other, "y": None}
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.BOOL, shape)
        for name, shape in shapes.items()
    }
    node = helper.make_node("And", ["one", "other"], ["y"])
    made = helper.make_graph([node], "toy", [values["one"], values["other"]], [values["y"]])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


def test_one_axis_that_is_not_known_leaves_the_others_known():
    inferred = infer_shapes(and_of(["batch", 1, 1, "keys"], ["queries", "others"]))
    *known, last = sizes(inferred)["y"]
    assert known == ["batch", 1, "queries"] and last not in ("keys", "others", 0)


def test_the_sizes_of_a_gather_in_every_row_are_true():
    def at_the_best(x):
        indices = ops.argmax(x[:, :, 0], axis=1)
        return {"y": ops.take_along_axis(x, indices[:, None, None], axis=1)[:, 0]}

    graph = converted(at_the_best, TensorSpec("x", "float32", ("batch", "length", 7)))
    [gather] = [node for node in graph.nodes if node.op_type == "GatherND"]
    assert gather.output[0] in sizes(graph.model)
    onnx.checker.check_model(graph.whole(), full_check=True)
    require_true_sizes(graph, {"x": floats(2, 5, 7)})


def test_shapes_that_onnx_contradicts_are_not_said():
    model = and_of(["batch", 3], ["batch", 3])
    right, ranks, numbers = (
        helper.make_tensor_value_info("y", TensorProto.BOOL, shape)
        for shape in (["batch", 3], ["batch", 3, 1], ["batch", 5])
    )
    unknown = helper.make_tensor_value_info("z", TensorProto.BOOL, ["batch"])
    del model.graph.output[:]  # of which the type is said, and not looked at
    kept = without_contradicted([right, ranks, numbers, unknown], model)
    assert kept == [right, unknown]


def test_a_reason_without_words_gets_some(monkeypatch):
    def fail(self, *args):
        raise AssertionError

    monkeypatch.setattr(symbolic_shapes._Inference, "_infer_impl", fail)
    with pytest.raises(ValueError, match="can not be inferred: they contradict each other$"):
        infer_shapes(and_of(["batch"], ["batch"]))


@pytest.mark.parametrize("masked", others_long([True, False]))
@pytest.mark.parametrize("causal", others_long([True, False]))
def test_restricted_self_attention_leaves_in_a_functional_model(causal, masked):
    x, mask = keras.Input((None, 8), name="x"), keras.Input((None,), dtype="bool", name="mask")
    layer = RestrictedSelfAttention(3, 4, window=2, causal=causal)
    model = keras.Model([x, mask], layer(x, mask=mask)) if masked else keras.Model(x, layer(x))
    sequence = ("batch", "length")
    specs = [TensorSpec("x", "float32", (*sequence, 8)), TensorSpec("mask", "bool", sequence)]
    graphs, signatures = exported(randomize(model), specs if masked else specs[:1])
    names = [each.name for each in signatures["model"].inputs]
    assert graphs["model"].node_counts()["MultiHeadAttention"] == 1
    for length in (1, 5, 7):
        mask = right_padded([length, 1], length)
        given = {"x": floats(2, length, 8), "mask": mask}
        agree(graphs, signatures, given)
        require_true_sizes(graphs["model"], {name: given[name] for name in names})


def test_equal_sizes_are_merged_into_the_same_one_whatever_their_order_is():
    for order in (["b", "a", "batch"], ["batch", "a", "b"]):
        inference = symbolic_shapes._Inference(2**31 - 1, True, False, 0)
        inference.symbolic_dims_ = dict(zip("a b c batch".split(), sympy.symbols("a b c batch")))
        inference.input_symbols_ = {"batch"}
        inference._add_suggested_merge(order)
        assert inference.suggested_merge_ == {"a": "batch", "b": "batch"}
        inference._add_suggested_merge(["c", "a"])
        assert inference.suggested_merge_ == dict.fromkeys("abc", "batch")
        inference._add_suggested_merge(["b", 5])
        assert inference.suggested_merge_ == dict.fromkeys(["a", "b", "c", "batch"], 5)
        with pytest.raises(ValueError, match="5 and 7 differ"):
            inference._add_suggested_merge(["a", 7])

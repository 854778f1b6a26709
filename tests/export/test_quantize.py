"""Other precisions: near float32, smaller, and the nodes that were meant."""

import collections
import functools

import keras
import numpy as np
import pytest
from onnx import TensorProto, helper

from seqkeras.export.families import plan_export
from seqkeras.export.quantize import BLOCK, PRECISIONS, quantize
from seqkeras.models import GPT, Bert, RNNLanguageModel, Transformer
from seqkeras.values import BANNED_LOGIT
from tests.arrays import built, close, floats, randomize
from tests.conftest import others_long
from tests.export.running import graphs_of, optimized, run
from tests.export.written import graph

B, S, V = 3, 7, 61
MODELS = {
    "lstm": lambda: RNNLanguageModel(V, 19, 23, num_layers=2, cell="lstm"),
    "bert": lambda: Bert(V, 32, 2, 2, 48, max_length=40, num_segments=2),
    "transformer": lambda: Transformer(V, V, 32, 2, 2, 48, max_length=600, shared_embeddings="all"),
    "gpt": lambda: GPT(V, 32, 2, 2, 48, 37),
}
every_model = pytest.mark.parametrize("name", others_long(MODELS, 2))


@functools.cache
def exported(name):
    """The float32 graphs of a tiny model by role."""
    return graphs_of(plan_export(built(MODELS[name]()), max_length=6).graphs)


def inputs_of(graph, past=5):
    """Random inputs of a graph, for B texts."""
    places = graph.session().get_inputs()
    in_slots = any(each.name == "cache_lengths" for each in places)  # a token a step for each row
    sizes = {"beam": 1, "length": 1 if in_slots else S, "source_length": S, "previous_beam": 1}
    sizes |= {"past_length": past, "capacity": past + 1}
    inputs = {}
    for number, each in enumerate(places):
        shape = [sizes.get(size, size if isinstance(size, int) else B) for size in each.shape]
        if each.type == "tensor(float)":
            inputs[each.name] = floats(*shape, seed=number)
        elif each.type == "tensor(bool)":
            inputs[each.name] = np.arange(S) < np.array([S, 2, 5])[:, None]
        else:
            inputs[each.name] = np.random.default_rng(number).integers(4, V, shape)
    given = {"lengths": np.array([S, 2, 5]), "beam_index": np.arange(B)[:, None], "k": np.array(V)}
    given["cache_lengths"] = np.array([past, 0, 2])
    given["segment_ids"] = np.tile(np.arange(S) > 3, (B, 1)).astype("int64")
    return inputs | {name: value for name, value in given.items() if name in inputs}


def relative(actual, expected):
    expected = expected.astype("float64")
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def in_eight_bits(x):
    """The (Q - z) s that a row of activations becomes: one scale and zero point for all of x."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255)
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def products(kernel, bias=None):
    """y = x W (+ b), and its sum, which reads it too without a bias."""
    nodes = [("MatMul", ["x", "kernel"], ["product" if bias is not None else "y"], {})]
    weights = {"kernel": kernel}
    if bias is not None:
        nodes.append(("Add", ["bias", "product"], ["y"], {}))
        weights["bias"] = bias
    rows, columns = kernel.shape
    return graph(nodes, {"x": ["batch", rows]}, {"y": ["batch", columns]}, weights)


IN_BRANCHES = {"ReduceMin": 1, "Equal": 1, "If": 1, "MultiHeadAttention": 2}
BY_ROW = {"ReduceMax": 1, "ReduceMin": 1, "Neg": 1, "Max": 1, "Div": 1, "Mul": 1}


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("role", ["model", "decoder_step"])
def test_a_product_is_that_of_whole_numbers_with_a_scale_for_each_column(role, biased):
    # Columns of very different sizes: with one scale for all, most would become zero.
    sizes = np.logspace(-3, 3, 29, dtype="float32")
    kernel = floats(37, 29) * sizes
    bias = floats(29) * sizes if biased else None
    whole = np.empty_like(kernel)
    for column in range(29):
        scale = np.abs(kernel[:, column]).max() / 127
        whole[:, column] = np.rint(kernel[:, column] / scale) * scale
    x = floats(5, 37)
    made = quantize({role: products(kernel, bias)}, "int8")[role]
    by_row = BY_ROW | ({"Add": 1} if biased else {}) if role == "model" else {}
    assert made.node_counts() == {"DynamicQuantizeMatMul": 1} | by_row
    actual = run(made, {"x": x})["y"]
    largest = np.abs(x).max(axis=1, keepdims=True) if by_row else np.float32(1)
    expected = in_eight_bits(x / largest).astype("float64") @ whole * largest
    expected += bias if biased else 0
    close(actual / sizes, expected / sizes, rtol=1e-4, atol=1e-4)
    assert relative(actual / sizes, run(products(kernel, bias), {"x": x})["y"] / sizes) < 0.02


def test_a_row_of_large_numbers_costs_the_others_no_digits():
    x, written = floats(5, 37), products(floats(37, 29), floats(29))
    x[3] = 0
    made = quantize({"model": written}, "int8")["model"]
    alone = run(made, {"x": x})["y"]
    x[1] *= 1e4
    beside, expected = run(made, {"x": x})["y"], run(written, {"x": x})["y"]
    for row in range(5):
        assert relative(beside[row], expected[row]) < 0.02
        if row != 1:
            assert relative(beside[row], alone[row]) < 0.01


def test_a_product_that_is_an_output_or_is_read_twice_keeps_its_bias_apart():
    for outputs, count in ((("y", "product"), 1), (("y", "z"), 2)):
        nodes = [
            ("MatMul", ["x", "kernel"], ["product"], {}),
            ("Add", ["product", "bias"], ["y"], {}),
            ("Add", ["product", "x"], ["z"], {}),
        ][: count + 1]
        shapes = {name: ["batch", 37] for name in ("x", *outputs)}
        weights = {"kernel": floats(37, 37), "bias": floats(37)}
        written = graph(nodes, {"x": shapes.pop("x")}, shapes, weights)
        made = quantize({"model": written}, "int8")["model"]
        assert made.node_counts() == {"DynamicQuantizeMatMul": 1, "Add": count}
        x = {"x": floats(5, 37)}
        for name, expected in run(written, x).items():
            assert relative(run(made, x)[name], expected) < 0.02


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("biased", [False, True])
def test_a_gemm_becomes_a_product(turned, biased):
    kernel = floats(29, 37) if turned else floats(37, 29)
    names = ["x", "kernel", "bias"][: 3 if biased else 2]
    weights = {"kernel": kernel} | ({"bias": 9 * floats(29)} if biased else {})
    nodes = [("Gemm", names, ["y"], {"transB": turned})]
    written = graph(nodes, {"x": ["batch", 37]}, {"y": ["batch", 29]}, weights)
    made = quantize({"decoder_step": written}, "int8")["decoder_step"]
    assert made.node_counts() == {"DynamicQuantizeMatMul": 1}
    x = {"x": floats(5, 37)}
    assert relative(run(made, x)["y"], run(written, x)["y"]) < 0.02


def test_a_gemm_with_factors_and_a_small_product_stay():
    nodes = [
        ("Gemm", ["x", "kernel"], ["h"], {"alpha": 2.0}),
        ("Gemm", ["x", "kernel", "bias"], ["b"], {"beta": 0.5}),
        ("MatMul", ["h", "small"], ["s"], {}),
        ("MatMul", ["h", "large"], ["y"], {}),
    ]
    outputs = {"y": ["batch", 31], "s": ["batch", 2], "b": ["batch", 29]}
    weights = {"kernel": floats(37, 29), "bias": floats(29)}
    weights |= {"small": floats(29, 2), "large": floats(29, 31)}
    written = graph(nodes, {"x": ["batch", 37]}, outputs, weights)
    counts = quantize({"decoder_step": written}, "int8")["decoder_step"].node_counts()
    assert counts == {"Gemm": 2, "MatMul": 1, "DynamicQuantizeMatMul": 1}


def test_products_inside_a_branch_are_made_whole_too():
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["x", "kernel"], ["inner"])],
        "branch",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, ["batch", 29])],
    )
    nodes = [
        ("ReduceSum", ["x"], ["sum"], {"keepdims": 0}),
        ("Cast", ["sum"], ["some"], {"to": TensorProto.BOOL}),
        ("If", ["some"], ["y"], {"then_branch": branch, "else_branch": branch}),
    ]
    kernel = {"kernel": floats(37, 29)}
    written = graph(nodes, {"x": ["batch", 37]}, {"y": ["batch", 29]}, kernel)
    made = quantize({"model": written}, "int8")["model"]
    assert made.node_counts()["DynamicQuantizeMatMul"] == 2
    assert made.weights.keys() == {"kernel/int7"}
    assert np.abs(made.weights["kernel/int7"]).max() == 63
    x = {"x": floats(5, 37)}
    assert relative(run(made, x)["y"], run(written, x)["y"]) < 0.03


@pytest.mark.parametrize("scored", [False, True])
def test_an_attention_becomes_one_on_whole_numbers_unless_scores_are_added(scored):
    scores = np.where(np.tri(S, dtype=bool), 0, -1e30).astype("float32")[None, None]
    options = {"num_heads": 2, "scale": 0.4, "mask_filter_value": -1e30}
    names = ["x", "kernel", "bias", "padding", "", "scores" if scored else ""]
    nodes = [
        ("Cast", ["padding_ids"], ["padding"], {"to": TensorProto.INT32}),
        ("Attention", names, ["y"], options),
    ]
    weights = {"kernel": floats(32, 96) / 6, "bias": floats(96)}
    weights |= {"scores": np.tile(scores, (B, 2, 1, 1))} if scored else {}
    shapes = {"x": [B, S, 32], "padding_ids": [B, S]}
    written = graph(nodes, shapes, {"y": [B, S, 32]}, weights)
    padding = (np.arange(S) < np.array([S, 2, 5])[:, None]).astype("int64")
    inputs = {"x": floats(B, S, 32), "padding_ids": padding}
    expected = run(written, inputs)["y"]
    step, in_int8 = "decoder_step", {"DynamicQuantizeMatMul": 1}
    for role, precision, product, limit in (
        (step, "int8", in_int8, 0.02),
        ("model", "int8", in_int8 | BY_ROW, 0.02),
        (step, "int4", {"MatMulNBits": 1}, 0.15),
    ):
        made = quantize({role: written}, precision)[role]
        counts = made.node_counts()
        if role == step and precision == "int8" and not scored:
            assert counts == {"Cast": 1, "DynamicQuantizeLinear": 1, "QAttention": 1}
        else:
            attention = {"MultiHeadAttention": 1} if scored else IN_BRANCHES
            parts = ({"Cast": 1, "Split": 1}, product, attention)
            assert counts == sum(map(collections.Counter, parts), collections.Counter())
        assert relative(run(made, inputs)["y"], expected) < limit


def test_attention_without_padding_is_the_same_in_its_own_branch():
    options = {"num_heads": 2, "scale": 0.4, "mask_filter_value": -1e30}
    nodes = [
        ("Cast", ["padding_ids"], ["padding"], {"to": TensorProto.INT32}),
        ("Attention", ["x", "kernel", "bias", "padding"], ["h"], options),
        ("Attention", ["h", "kernel", "bias", "padding"], ["y"], options),
    ]
    weights = {"kernel": floats(32, 96) / 6, "bias": floats(96)}
    shapes = {"x": ["batch", "length", 32], "padding_ids": ["batch", "length"]}
    written = graph(nodes, shapes, {"y": ["batch", "length", 32]}, weights)
    made = quantize({"model": written}, "int8")["model"]
    counts = made.node_counts()
    assert (counts["If"], counts["MultiHeadAttention"], counts["ReduceMin"]) == (2, 4, 3)
    x = floats(B, S, 32)
    longer = {"x": np.pad(x, [(0, 0), (0, 3), (0, 0)], constant_values=0.5)}
    longer["padding_ids"] = np.pad(np.ones((B, S), "int64"), [(0, 0), (0, 3)])
    whole = run(made, {"x": x, "padding_ids": np.ones((B, S), "int64")})["y"]
    close(run(made, longer)["y"][:, :S], whole, rtol=1e-5, atol=1e-5)


def test_four_bits_have_a_scale_for_each_block_and_reach_its_farthest_number():
    kernel = floats(2 * BLOCK + 5, 29)
    kernel[:BLOCK] *= 100
    made = quantize({"decoder_step": products(kernel, floats(29))}, "int4")["decoder_step"]
    assert made.node_counts() == {"MatMulNBits": 1}
    expected = np.zeros_like(kernel)
    for column in range(29):
        for begin in range(0, len(kernel), BLOCK):
            block = kernel[begin : begin + BLOCK, column]
            scale = block[np.abs(block).argmax()] / -8
            whole = np.clip(np.rint(block / scale), -8, 7) * scale
            expected[begin : begin + BLOCK, column] = whole
            assert np.abs(whole - block).max() <= np.abs(scale) * 1.001
    # A row of the unit matrix is exact in 8 bits, so that it shows a row of the kernel.
    unit = np.eye(len(kernel), dtype="float32")
    close(run(made, {"x": unit})["y"] - floats(29), expected, rtol=1e-3, atol=1e-3)


def test_a_table_has_a_scale_for_each_row():
    table = floats(V, 32) * np.logspace(-3, 3, V, dtype="float32")[:, None]
    nodes, shape = [("Gather", ["table", "token_ids"], ["y"], {})], ["batch", "length"]
    written = graph(nodes, {"token_ids": shape}, {"y": [*shape, 32]}, {"table": table})
    made = quantize({"model": written}, "int8-embedding")["model"]
    token_ids = np.arange(V)[None]
    rows = run(made, {"token_ids": token_ids})["y"][0]
    limits = np.abs(table).max(1) / 254
    assert (np.abs(rows - table).max(1) <= 1.001 * limits).all()
    assert {each.dtype for each in made.weights.values()} == {np.dtype("int8")}
    with pytest.raises(ValueError, match="^quantize: int8 would leave these graphs as they are"):
        quantize({"model": written}, "int8")


LIMITS = {"int8": 0.05, "int8-embedding": 0.05, "int4": 0.4, "float16": 0.004}


@pytest.mark.parametrize("precision", PRECISIONS)
@every_model
def test_every_graph_answers_nearly_as_in_float32_and_is_smaller(name, precision):
    if (name, precision) == ("bert", "int4"):
        return
    graphs = exported(name)
    before = {role: each.whole().SerializeToString() for role, each in graphs.items()}
    made = quantize(graphs, precision)
    for role, each in graphs.items():
        assert each.whole().SerializeToString() == before[role]
        inputs = inputs_of(each)
        expected, actual = run(each, inputs), run(made[role], inputs)
        assert expected.keys() == actual.keys()
        for output, value in expected.items():
            assert actual[output].dtype == value.dtype
            if output not in ("candidate_ids", "candidate_log_probs"):
                allowed = value > BANNED_LOGIT / 2
                assert relative(actual[output][allowed], value[allowed]) < LIMITS[precision]
                np.testing.assert_array_equal(actual[output] > BANNED_LOGIT / 2, allowed)
        sizes = [sum(v.nbytes for v in g.constants.values()) for g in (made[role], each)]
        assert sizes[0] < (0.6 if precision in ("int8", "float16") else 0.5) * sizes[1]


def test_the_projections_of_keras_attention_become_whole():
    x = keras.Input((None, 24), name="x")
    model = randomize(keras.Model(x, keras.layers.MultiHeadAttention(3, 8)(x, x)))
    [written] = graphs_of(plan_export(model).graphs).values()
    assert written.node_counts()["Gemm"] == 4  # without a bias, and beta of 0
    made = quantize({"model": written}, "int8")["model"]
    counts = made.node_counts()
    assert counts["DynamicQuantizeMatMul"] == 4 and "Gemm" not in counts
    inputs = {"x": floats(B, S, 24)}
    assert relative(run(made, inputs)["output"], run(written, inputs)["output"]) < LIMITS["int8"]


@pytest.mark.long
@pytest.mark.parametrize("precision", ["int8", "int8-embedding", "int4"])
def test_the_matrix_that_makes_logits_stays_the_transpose_of_its_table(precision):
    step = quantize(exported("transformer"), precision)["decoder_step"]
    [table] = [value for value in step.weights.values() if value.shape == (V, 32)]
    [output] = [value for value in step.weights.values() if value.shape == (32, V)]
    assert table.dtype == (np.float32 if precision == "int8" else np.int8)
    np.testing.assert_array_equal(output, table.T)
    counts = step.node_counts()
    assert counts.get("MatMulNBits", 0) == (12 if precision == "int4" else 0)


@pytest.mark.parametrize("precision", ["int8", "int8-embedding"])
@every_model
def test_the_runtime_leaves_no_number_to_be_made_float_by_itself(name, precision, tmp_path):
    whole_output = precision == "int8-embedding"
    for role, made in quantize(exported(name), precision).items():
        counts = optimized(made, tmp_path).node_counts()
        assert not {"DequantizeLinear", "MatMulInteger", "Attention", "LSTM"} & set(counts)
        if name == "transformer":
            layers = 2
            if role == "encoder":
                assert counts["MultiHeadAttention"] == 2 * layers  # with padding, and without
                assert counts["DynamicQuantizeMatMul"] == layers * (4 + 2)
            else:
                assert counts["DynamicQuantizeMatMul"] == 6 * layers + whole_output
                assert counts["Where"] == 2  # of padding: the bias, and the weights that are shown
        if name == "lstm":
            assert counts["DynamicQuantizeLSTM"] == 2


def test_an_unknown_precision_and_int4_without_steps_are_refused():
    written = {"model": products(floats(37, 29))}
    for precision, message in {
        "int3": "precision must be one of int8, int8-embedding, int4, float16; received 'int3'.",
        "int4": "int4 wins in decoder steps only, and this model has none; choose int8.",
    }.items():
        with pytest.raises(ValueError, match=f"^quantize: {message}$"):
            quantize(written, precision)

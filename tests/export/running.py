"""ONNX graphs, made and run."""

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from seqkeras.export.families.shapes import infer_outputs
from seqkeras.export.graph import Graph
from seqkeras.export.onnx_graphs import convert
from seqkeras.export.slots import to_trace, with_both_steps
from tests.arrays import close, numbers


def converted(function, *inputs, **options):
    """The graph of a function of tensors by keyword, which returns a dictionary."""
    return convert(function, inputs, infer_outputs(function, inputs), "toy", **options)


def graphs_of(signatures, **options):
    """The graphs of signatures, by role."""
    graphs = {
        role: convert(each.function, each.inputs, each.outputs, role, **options)
        for role, each in to_trace(signatures, options.get("portable", False)).items()
    }
    return with_both_steps(graphs, signatures)


def run(graph, inputs):
    """The outputs of an `seqkeras.export.graph.Graph` by name, in its order."""
    session = graph.session()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def evaluate(graph, inputs):
    """The outputs of a graph by name, on ONNX's reference evaluator."""
    whole = graph.whole()
    names = [output.name for output in whole.graph.output]
    with np.errstate(divide="ignore"):  # it takes the logarithm of a softmax
        return dict(zip(names, ReferenceEvaluator(whole).run(names, inputs), strict=True))


def require_agreement(graph, function, inputs, rtol=1e-4, atol=1e-5):
    """Assert that a graph gives what a function gives; its outputs."""
    actual, expected = run(graph, inputs), numbers(function(**inputs))
    assert {*actual} == {*expected}
    for name, value in actual.items():
        close(value, expected[name], rtol=rtol, atol=atol)
    return actual


def optimized(graph, folder, level="ALL"):
    """The graph as ONNX Runtime runs it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}"
    )
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    model = graph.whole().SerializeToString()
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return Graph(onnx.load(folder / "optimized.onnx"))


def require_true_sizes(graph, inputs):
    """Assert that all tensors have the sizes that are said of them, one symbol being one size."""
    model = graph.whole()
    said = {each.name: each for each in [*model.graph.value_info, *model.graph.output]}
    del model.graph.value_info[:], model.graph.output[:]
    for each in said.values():
        output = model.graph.output.add(name=each.name)
        output.type.tensor_type.elem_type = each.type.tensor_type.elem_type
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    symbols = {}
    for name, value in zip(said, session.run(list(said), inputs), strict=True):
        dims = said[name].type.tensor_type.shape.dim
        assert len(dims) == value.ndim, name
        for dim, size in zip(dims, value.shape, strict=True):
            known = dim.dim_value if dim.HasField("dim_value") else None
            if known is None and dim.dim_param:
                known = symbols.setdefault(dim.dim_param, size)
            assert known in (None, size), (name, dim, size)

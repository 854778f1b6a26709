"""An ONNX graph, run."""

import onnxruntime


def run(graph, inputs):
    """The outputs of an `seqkeras.export.graph.Graph` by name, in its order."""
    session = graph.session()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


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

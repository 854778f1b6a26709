"""ONNX graphs written by hand."""

from onnx import TensorProto, helper

from seqkeras.export.composites import MICROSOFT
from seqkeras.export.graph import Graph


def graph(nodes, inputs, outputs, weights):
    """An `seqkeras.export.graph.Graph`.

    Args:
        nodes: (operator, inputs, outputs, attributes) each.
        inputs, outputs: name -> shape; of integers where the name ends with "ids" or "lengths",
            else of floats.
        weights: name -> array.
    """
    made = [
        helper.make_node(operator, takes, gives, domain=_domain(operator), **attributes)
        for operator, takes, gives, attributes in nodes
    ]
    model = helper.make_model(
        helper.make_graph(made, "written", _values(inputs), _values(outputs)),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=8,
    )
    return Graph(model, weights)


def _domain(operator):
    return MICROSOFT if operator in ("Attention", "Gelu") else ""


def _values(shapes):
    return [
        helper.make_tensor_value_info(
            name,
            TensorProto.INT64 if name.endswith(("ids", "lengths")) else TensorProto.FLOAT,
            shape,
        )
        for name, shape in shapes.items()
    ]

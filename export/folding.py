"""Constant folding: nodes that depend on constants only, such as a transposed kernel."""

from onnx.reference import ReferenceEvaluator

GROWTH = 2  # a result with more than this multiple of its inputs' bytes is not folded
KEPT = {"Identity", "Constant", "ConstantOfShape", "Expand", "Tile", "RandomNormal"}


def fold_constants(graph):
    """Replace nodes of an `export.graph.Graph` by their values where all inputs are constants."""
    for node in list(graph.nodes):
        values = [graph.constants.get(name) for name in node.input if name]
        if not values or any(value is None for value in values):
            continue
        if node.domain or node.op_type in KEPT or any(a.HasField("g") for a in node.attribute):
            continue
        opset = graph.model.opset_import[0].version
        results = ReferenceEvaluator(node, opsets={"": opset}).run(
            None, dict(zip([name for name in node.input if name], values, strict=True))
        )
        if sum(array.nbytes for array in results) > GROWTH * sum(array.nbytes for array in values):
            continue
        graph.constants.update(zip(node.output, results, strict=True))
        graph.nodes.remove(node)

"""An ONNX graph, run."""


def run(graph, inputs):
    """The outputs of an `export.graph.Graph` by name, in its order."""
    session = graph.session()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))

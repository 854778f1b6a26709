"""Generation within a graph, by the loop of `seqkeras.decoding`: in a SavedModel, and in one ONNX
graph around the exported step graph (`one_graph`)."""

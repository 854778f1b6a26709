"""ONNX graphs as files: one that holds all, or several around one file of weights.

Each weight lies once in that file, whoever uses it. It also serves models of more than 2 GB, which
no ONNX file can hold itself.
"""

import hashlib
from pathlib import Path

import onnx
from onnx import TensorProto, external_data_helper, helper

WEIGHTS = "weights.bin"
ALIGNMENT = 4096  # of a weight in its file, which a runtime maps page by page
MOST_IN_ONE_FILE = 2**30  # bytes of weights


def save(graphs, folder):
    """Write graphs as `ROLE.onnx` into a folder.

    Args:
        graphs: role -> `export.graph.Graph`.
        folder: where to write; it exists.

    Returns:
        role -> the names of the files that the graph needs beside its own: none, or `WEIGHTS`.
    """
    folder = Path(folder)
    weights = sum(value.nbytes for graph in graphs.values() for value in graph.constants.values())
    if len(graphs) == 1 and weights <= MOST_IN_ONE_FILE:
        [(role, graph)] = graphs.items()
        onnx.save(graph.whole(), folder / f"{role}.onnx")
        return {role: ()}
    places, needs = {}, {}
    with open(folder / WEIGHTS, "wb") as file:
        for role, graph in graphs.items():
            model = graph.with_constants(graph.constants.keys() - graph.weights.keys())
            for name, value in graph.weights.items():
                model.graph.initializer.append(_stored(name, value, file, places))
            onnx.save(model, folder / f"{role}.onnx")
            needs[role] = (WEIGHTS,) if graph.weights else ()
    if not places:
        (folder / WEIGHTS).unlink()
    return needs


def _stored(name, value, file, places):
    """A tensor whose numbers lie in a file, where they are written unless they are there."""
    data = value.tobytes()
    key = hashlib.sha256(data).digest()
    if key not in places:
        file.write(b"\0" * (-file.tell() % ALIGNMENT))
        places[key] = file.tell()
        file.write(data)
    tensor = TensorProto(
        name=name,
        data_type=helper.np_dtype_to_tensor_dtype(value.dtype),
        dims=value.shape,
        raw_data=b"",
    )
    external_data_helper.set_external_data(tensor, WEIGHTS, places[key], len(data))
    tensor.ClearField("raw_data")
    return tensor

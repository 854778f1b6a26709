"""ONNX graphs as files, with weights inside or in files of their own.

Each weight is stored once, for all graphs that read it, as are a matrix and its transpose, such as
an embedding table and the matrix of the logits. Separate files also allow models of more than 2 GB,
the limit of an ONNX file.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from seqkeras.export.graph import Graph

__all__ = ["save"]

FLOAT32 = "float32"
WEIGHTS = "weights.bin"
ALIGNMENT = 4096  # bytes, of a weight in its file, which a runtime maps page by page
MOST_IN_ONE_FILE = 2**30  # bytes of weights
# The same limit in a bundle. A runtime reads and copies a graph that holds its weights: an encoder
# of 22 million parameters then takes 188 MB of memory, against 119 MB with mapped weights.
MOST_IN_A_GRAPH = 2**24
TURNED = "/transposed"


def save(graphs: Mapping[str, Graph], folder: Path) -> dict[str, Sequence[str]]:
    """Write graphs in float32 as `ROLE.onnx` into a folder.

    Args:
        graphs: role -> `seqkeras.export.graph.Graph`.
        folder: a path; the folder is made where there is none.

    Returns:
        role -> names of the other files that the graph needs, sorted; none where its weights are
        inside.

    Example:
        >>> import pathlib
        >>> from keras import ops
        >>> from seqkeras.export.onnx_files import save
        >>> from seqkeras.export.onnx_graphs import convert
        >>> from seqkeras.serving.manifest import TensorSpec
        >>> x, y = (TensorSpec(name, "float32", ("batch", 3)) for name in "xy")
        >>> graph = convert(lambda x: {"y": ops.relu(x)}, [x], [y], name="toy")
        >>> save({"model": graph}, pathlib.Path("onnx"))  # no files beside onnx/model.onnx
        {'model': ()}
    """
    return save_precisions({FLOAT32: graphs}, folder, MOST_IN_ONE_FILE)[FLOAT32]


def save_precisions(
    precisions: Mapping[str, Mapping[str, Graph]],
    folder: Path,
    most_in_a_graph: int = MOST_IN_A_GRAPH,
) -> dict[str, Any]:
    """Write the graphs of several precisions, name -> role -> `Graph`, as `graph_file` names them.

    Weights that several precisions share have a file of their own, so that a precision reads only
    what it needs. A graph that shares none has at most `most_in_a_graph` bytes of weights in its
    own file. Returned is name -> role -> the names of other files that the graph needs, sorted.
    """
    graphs = {
        (precision, role): graph
        for precision, by_role in precisions.items()
        for role, graph in by_role.items()
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = sum(value.nbytes for graph in graphs.values() for value in graph.constants.values())
    if len(graphs) == 1 and weights <= most_in_a_graph:
        [((precision, role), graph)] = graphs.items()
        onnx.save(graph.whole(), folder / graph_file(role, precision))
        return {precision: {role: ()}}
    store = _Store(graphs)
    store.write(folder)
    needs = {precision: {} for precision in precisions}
    for (precision, role), graph in graphs.items():
        model, needs[precision][role] = store.model(graph)
        onnx.save(model, folder / graph_file(role, precision))
    return needs


def graph_file(role: str, precision: str = FLOAT32) -> str:
    """Return the name of a graph's file."""
    return f"{role}.onnx" if precision == FLOAT32 else f"{role}.{precision}.onnx"


def weights_file(precisions: Collection[str]) -> str:
    """Return the name of the file of the weights that these precisions, and no others, read."""
    if set(precisions) == {FLOAT32}:
        return WEIGHTS
    return ".".join(["weights", *sorted(precisions), "bin"])


def stored_bytes(graphs: Mapping[str, Graph]) -> int:
    """Return the bytes of one precision's files without the gaps between weights."""
    store = _Store({(FLOAT32, role): graph for role, graph in graphs.items()})
    weights = sum(value.nbytes for value in store.values.values())
    return weights + sum(store.model(graph)[0].ByteSize() for graph in graphs.values())


class _Store:
    """The contents of the files of weights, and their offsets, of (precision, role) -> `Graph`."""

    def __init__(self, graphs: Any):
        self.keys = {}  # id of an array -> (key of its numbers, whether they lie transposed)
        self.values = {}  # key -> array
        users = {}
        for (precision, _), graph in graphs.items():
            for value in graph.weights.values():
                if id(value) not in self.keys:
                    self.keys[id(value)] = self._key(value)
                key, _ = self.keys[id(value)]
                self.values.setdefault(key, value)
                users.setdefault(key, set()).add(precision)
        self.places, ends = {}, collections.Counter()
        for key, value in self.values.items():
            file = weights_file(users[key])
            offset = ends[file] + -ends[file] % ALIGNMENT
            self.places[key] = file, offset
            ends[file] = offset + value.nbytes

    def write(self, folder):
        """Write the files."""
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(open(folder / name, "wb"))
                for name in {name for name, _ in self.places.values()}
            }
            for key, (name, offset) in self.places.items():
                files[name].write(b"\0" * (offset - files[name].tell()))
                files[name].write(self.values[key].tobytes())

    def model(self, graph):
        """Return a graph as a model that refers to the files, and their names."""
        model = graph.with_constants(graph.constants.keys() - graph.weights.keys())
        names = set()
        for name, value in graph.weights.items():
            key, transposed = self.keys[id(value)]
            file, offset = self.places[key]
            names.add(file)
            if transposed:  # the runtime transposes it once, at load time
                node = helper.make_node("Transpose", [name + TURNED], [name], perm=[1, 0])
                model.graph.node.insert(0, node)
                name, value = name + TURNED, value.T
            model.graph.initializer.append(_tensor(name, value, file, offset))
        return model, tuple(sorted(names))

    def _key(self, value):
        """Return the sha256 of an array, or of its transpose if that is stored already."""
        key = hashlib.sha256(np.ascontiguousarray(value)).digest()
        if key not in self.values and value.ndim == 2:
            transposed = hashlib.sha256(np.ascontiguousarray(value.T)).digest()
            if transposed in self.values:
                return transposed, True
        return key, False


def _tensor(name, value, file, offset):
    """Return a tensor whose values are stored in a file."""
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    tensor = TensorProto(name=name, data_type=dtype, dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in {"location": file, "offset": offset, "length": value.nbytes}.items():
        tensor.external_data.add(key=key, value=str(entry))
    return tensor

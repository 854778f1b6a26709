"""Files of graphs and of the weights that they share."""

import numpy as np
import pytest

from seqkeras.export.graph import LARGE
from seqkeras.export.onnx_files import save, save_precisions, stored_bytes
from seqkeras.export.quantize import quantize
from seqkeras.serving.opening import Runtime
from tests.arrays import close, floats
from tests.export.running import run
from tests.export.written import graph

TABLE = floats(61, 40)  # and its transpose makes the logits
KERNEL = floats(40, 40, seed=1)
NAMES = ("float32", "int8", "int8-embedding")


def one(name):
    """A graph with a table, which only "step" has twice, and a kernel that both have."""
    nodes = [
        ("Gather", [f"{name}/table", "token_ids"], ["rows"], {}),
        ("MatMul", ["rows", f"{name}/kernel"], ["hidden"], {}),
    ]
    weights = {f"{name}/table": TABLE.copy(), f"{name}/kernel": KERNEL.copy()}
    output, width = "hidden", 40
    if name == "step":
        nodes.append(("MatMul", ["hidden", "output"], ["logits"], {}))
        weights["output"] = np.ascontiguousarray(TABLE.T)
        output, width = "logits", 61
    return graph(
        nodes,
        {"token_ids": ["batch", "length"]},
        {output: ["batch", "length", width]},
        weights,
    )


def opened(folder, file):
    """The first output of a graph's file."""
    return Runtime().session(folder / file).run(None, {"token_ids": np.arange(61)[None]})[0]


def answer(graph):
    [value] = run(graph, {"token_ids": np.arange(61)[None]}).values()
    return value


def test_a_graph_alone_is_one_file(tmp_path):
    folder = tmp_path / "a/new/folder"
    assert save({"step": one("step")}, folder) == {"step": ()}
    assert [each.name for each in folder.iterdir()] == ["step.onnx"]
    close(opened(folder, "step.onnx"), answer(one("step")))


def test_many_weights_lie_beside_their_graph(tmp_path):
    graphs = {"float32": {"step": one("step")}}
    needs = save_precisions(graphs, tmp_path, most_in_a_graph=TABLE.nbytes)
    assert needs == {"float32": {"step": ("weights.bin",)}}
    assert (tmp_path / "step.onnx").stat().st_size < KERNEL.nbytes
    close(opened(tmp_path, "step.onnx"), answer(one("step")))


def test_a_weight_lies_once_in_whatever_graph_and_a_transpose_with_it(tmp_path):
    graphs = {role: one(role) for role in ("encoder", "step")}
    assert save(graphs, tmp_path) == dict.fromkeys(graphs, ("weights.bin",))
    size = (tmp_path / "weights.bin").stat().st_size
    assert TABLE.nbytes + KERNEL.nbytes <= size < TABLE.nbytes + KERNEL.nbytes + 4096
    for role, each in graphs.items():
        close(opened(tmp_path, f"{role}.onnx"), answer(each))


def test_a_transpose_that_comes_first_serves_its_table(tmp_path):
    written = one("step")
    written.constants = dict(reversed(written.constants.items()))
    save({"step": written, "encoder": one("encoder")}, tmp_path)
    assert (tmp_path / "weights.bin").stat().st_size < 2 * TABLE.nbytes
    close(opened(tmp_path, "step.onnx"), answer(written))
    close(opened(tmp_path, "encoder.onnx"), answer(one("encoder")))


def test_every_precision_reads_its_own_weights_and_those_it_shares(tmp_path):
    graphs = {role: one(role) for role in ("encoder", "step")}
    precisions = {"float32": graphs} | {name: quantize(graphs, name) for name in NAMES[1:]}
    needs = save_precisions(precisions, tmp_path)
    # int8 leaves the table and the matrix of logits in float32; int8-embedding neither.
    assert needs["float32"]["step"] == ("weights.bin", "weights.float32.int8.bin")
    both = "weights.int8.int8-embedding.bin"
    assert needs["int8"]["step"] == ("weights.float32.int8.bin", both)
    assert needs["int8-embedding"]["step"] == ("weights.int8-embedding.bin", both)
    sizes = {each.name: each.stat().st_size for each in tmp_path.glob("*.bin")}
    assert sizes["weights.float32.int8.bin"] == TABLE.nbytes
    assert sizes["weights.bin"] == KERNEL.nbytes
    assert sizes["weights.int8-embedding.bin"] == TABLE.size
    assert sizes[both] == KERNEL.size
    for name in NAMES:
        for role in graphs:
            file = f"{role}.onnx" if name == "float32" else f"{role}.{name}.onnx"
            close(opened(tmp_path, file), answer(precisions[name][role]))


@pytest.mark.parametrize("name", NAMES)
def test_the_size_that_is_told_is_that_of_the_files(name, tmp_path):
    graphs = {role: one(role) for role in ("encoder", "step")}
    graphs = graphs if name == "float32" else quantize(graphs, name)
    save(graphs, tmp_path)
    size = sum(each.stat().st_size for each in tmp_path.iterdir())
    gaps = 4096 * len(list(tmp_path.iterdir()))
    assert size - gaps <= stored_bytes(graphs) <= size
    assert all(value.nbytes > LARGE for each in graphs.values() for value in each.weights.values())

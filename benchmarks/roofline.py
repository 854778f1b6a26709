"""The least time that a model's operations need on this machine.

    limit = sum over operations of max(operations / matrix rate, bytes / read rate)

They run one after the other, so each has a limit of its own; that of their sums would let the
products of one wait for the weights of another. Only what can not be left out counts: the
multiplications and additions of matrix products, and the bytes of weights and caches, which each
step reads once. Activations, and what is between products, would be free at the limit.

Reference: Williams et al. 2009, "Roofline", https://doi.org/10.1145/1498765.1498785
"""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 2
BYTES = {"float32": 4, "int8": 1}
SHAPES = ((256, 768, 3072), (1024, 768, 768), (1024, 768, 3072), (2048, 512, 2048))
QUICK_SHAPES = ((8, 16, 32),)
ENOUGH = 2**27  # bytes that are read at least, so that starting the threads does not count


@dataclasses.dataclass(frozen=True)
class Work:
    """`count` equal operations.

    Args:
        count: how many.
        operations: multiplications and additions of each.
        size: bytes that each must read.
        dtype: of what is multiplied, "float32" or "int8".
    """

    count: int
    operations: int
    size: int
    dtype: str = "float32"


def product(count, rows, inner, columns, dtype):
    """Return the `Work` of (rows, inner) activations times a matrix of weights."""
    return Work(count, 2 * rows * inner * columns, inner * columns * BYTES[dtype], dtype)


def attention(count, queries, keys, sources, hidden_dim):
    """Return the `Work` of scores and contexts, where each query reads `keys` of its source."""
    operations = 4 * queries * keys * hidden_dim
    return Work(count, operations, 2 * sources * keys * hidden_dim * BYTES["float32"])


def encoder(sizes, batch_size, length, dtype):
    """Return the pass, a list of `Work`, in which an encoder of Transformer blocks reads a
    batch."""
    rows, layers, hidden_dim = batch_size * length, sizes["num_layers"], sizes["hidden_dim"]
    return [
        attention(layers, rows, length, batch_size, hidden_dim),
        *_products(layers, rows, hidden_dim, [3, 1], sizes["feed_forward_dim"], dtype),
    ]


def generation(sizes, vocab_size, batch_size, num_beams, source, target, dtype):
    """Return passes in which an encoder-decoder reads `source` tokens, and writes `target` of them.

    The matrix that makes logits stays in float32, as the precision int8 has it.
    """
    layers, hidden_dim = sizes["num_layers"], sizes["hidden_dim"]
    cross = product(layers, batch_size * source, hidden_dim, 2 * hidden_dim, dtype)
    passes = [[*encoder(sizes, batch_size, source, dtype), cross]]
    for step in range(target):
        rows = batch_size * (num_beams if step else 1)
        passes.append(
            [
                attention(layers, rows, step + 1, rows, hidden_dim),
                attention(layers, rows, source, batch_size, hidden_dim),
                *_products(
                    layers, rows, hidden_dim, [3, 1, 1, 1], sizes["feed_forward_dim"], dtype
                ),
                product(1, rows, hidden_dim, vocab_size, "float32"),
            ]
        )
    return passes


def _products(count, rows, hidden_dim, widths, feed_forward_dim, dtype):
    """Return projections to so many times the hidden size, and the feed-forward layer after
    them."""
    shapes = [(hidden_dim, width * hidden_dim) for width in widths]
    shapes += [(hidden_dim, feed_forward_dim), (feed_forward_dim, hidden_dim)]
    return [product(count, rows, *shape, dtype) for shape in shapes]


def limit(passes, matrix_rates, read_rate):
    """Return the least seconds of all passes.

    Args:
        passes: lists of `Work`.
        matrix_rates: dtype -> operations a second.
        read_rate: bytes a second.
    """
    return sum(
        work.count * max(work.operations / matrix_rates[work.dtype], work.size / read_rate)
        for works in passes
        for work in works
    )


def working_set(passes):
    """Return bytes that the largest pass reads: if caches hold them, they need not leave them."""
    return max(sum(work.count * work.size for work in works) for works in passes)


class Reader:
    """Reads an array by two threads, again and again, as fast as it goes: the largest number.

    Args:
        size: of the array, in bytes.
    """

    def __init__(self, size):
        self._times = max(1, ENOUGH // size)
        self._parts = np.array_split(np.ones(size // 4, np.float32), THREADS)
        self._threads = ThreadPoolExecutor(THREADS)
        self.size = self._times * 4 * (size // 4)

    def __call__(self, _):
        list(self._threads.map(self._read, self._parts))

    def _read(self, part):
        for _ in range(self._times):
            np.max(part)


class Multiplier:
    """Multiplies matrices in onnxruntime, by the node that our graphs have for it.

    Args:
        dtype: of the weights, "float32" or "int8".
        shape: rows, inner, columns.
        as_served: whether int8 is multiplied as bundles have it, exactly; else by the machine's
            fastest kernel, though its sums may overflow.
    """

    def __init__(self, dtype, shape, as_served=False):
        rows, inner, columns = shape
        self.operations = 2 * rows * inner * columns
        draw = np.random.default_rng(0)
        self._rows = draw.normal(size=(rows, inner)).astype(np.float32)
        self._session = _session(dtype, inner, columns, draw, as_served)

    def __call__(self, _):
        self._session.run(None, {"x": self._rows})


def _session(dtype, inner, columns, draw, as_served):
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    from seqkeras.serving.opening import CPU, Runtime

    weights = draw.integers(-127, 128, (inner, columns))
    constants = {"w": weights.astype(dtype)}
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    if dtype == "int8":
        constants["s"] = np.full(columns, 0.01, np.float32)
        node = helper.make_node(
            "DynamicQuantizeMatMul", ["x", "w", "s"], ["y"], domain="com.microsoft"
        )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, columns])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    versions = {"": 17, "com.microsoft": 1}
    opsets = [helper.make_opsetid(*version) for version in versions.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = Runtime(threads=THREADS).session_options(exact_int8=as_served)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=[CPU])

"""Multiply-adds of a model's call, and how many must wait for each other, counted over its graph.

Left out: what is no product of matrices, such as sums, activations and look-ups of embeddings.
TensorFlow alone has such graphs.
"""

import contextlib
import dataclasses
import math

import keras

from seqkeras.values import forget_variables_from_now

LOOPS = ("While", "StatelessWhile")
BRANCHES = ("then_branch", "else_branch")


@dataclasses.dataclass(frozen=True)
class Operations:
    """Products of matrices in a graph.

    Attributes:
        multiply_adds: pairs of one multiplication and one addition in all products.
        sequential: products on the longest way through the graph, each of which waits for the one
            before.
    """

    multiply_adds: int
    sequential: int


def count_operations(function, **inputs):
    """Return the `Operations` of a call; no weight gets a value, and nothing is computed.

    Args:
        function: takes the inputs as keywords, and returns tensors in any structure. Layers that it
            calls may be built in a `weightless` scope.
        inputs: name -> (shape, dtype), with sizes that are all known.

    Raises:
        ValueError: if the backend is not TensorFlow, or a loop has no number of turns that is known
            before.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "count_operations: the backend must be TensorFlow, whose graphs are counted; received "
            f"{keras.backend.backend()}. Set KERAS_BACKEND=tensorflow."
        )
    import tensorflow as tf

    with weightless(), tf.Graph().as_default() as graph:
        tensors = {
            name: tf.compat.v1.placeholder(dtype, shape, name)
            for name, (shape, dtype) in inputs.items()
        }
        outputs = tf.nest.flatten(function(**tensors))
        return _Counter(graph).count(outputs)


@contextlib.contextmanager
def weightless():
    """Build layers without values: their weights have shapes alone, in this context and later."""
    forget = forget_variables_from_now()
    try:
        with keras.StatelessScope(initialize_variables=False):
            yield
    finally:
        forget()


class _Counter:
    """Counts a graph; the operations that no output needs do not count.

    Args:
        main: the graph that holds the functions, and the constants that loops count to.
    """

    def __init__(self, main):
        self.main = main

    def count(self, outputs):
        multiply_adds, depths = 0, {}
        for operation in _in_order(outputs):
            cost = self._cost(operation)
            multiply_adds += cost.multiply_adds
            before = [depths[tensor.op] for tensor in operation.inputs]
            depths[operation] = cost.sequential + max(before, default=0)
        sequential = max((depths[tensor.op] for tensor in outputs), default=0)
        return Operations(multiply_adds, sequential)

    def _cost(self, operation):
        """Return the `Operations` of one node of the graph."""
        if operation.type in LOOPS:
            turns, body = self._turns(operation), self._within(operation, "body")
            return Operations(turns * body.multiply_adds, turns * body.sequential)
        if operation.type in ("If", "StatelessIf"):
            branches = [self._within(operation, name, 1) for name in BRANCHES]
            return max(branches, key=lambda branch: branch.multiply_adds)
        if operation.type in ("PartitionedCall", "StatefulPartitionedCall"):
            return self._within(operation, "f")
        multiply_adds = _multiply_adds(operation)
        return Operations(multiply_adds, int(multiply_adds > 0))

    def _within(self, operation, attribute, first=0):
        """Return the `Operations` of a function, which gets the node's inputs from `first` on."""
        from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

        definition = self.main._get_function(operation.get_attr(attribute).name).cached_definition
        shapes = [tensor.shape for tensor in operation.inputs[first:]]
        with self.main.as_default():
            graph = function_def_to_graph(definition, shapes)
        return self.count(graph.outputs)

    def _turns(self, loop):
        """Return the number of turns, Keras's limit of the loop, which constants make."""
        import tensorflow as tf

        try:
            with tf.compat.v1.Session(graph=self.main) as session:
                return int(session.run(loop.inputs[1]))
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(
                f"count_operations: the turns of the loop {loop.name} depend on the inputs."
            ) from error


def _in_order(outputs):
    """Return the operations that the outputs need, each after its inputs."""
    order, stack = {}, [tensor.op for tensor in outputs]
    while stack:
        operation = stack[-1]
        missing = [tensor.op for tensor in operation.inputs if tensor.op not in order]
        if missing:
            stack += missing
        else:
            order[stack.pop()] = None
    return list(order)


def _multiply_adds(operation):
    shapes = [tensor.shape for tensor in operation.inputs]
    if operation.type in ("MatMul", "BatchMatMulV2"):
        transposed = operation.get_attr("transpose_a" if operation.type == "MatMul" else "adj_x")
        return operation.outputs[0].shape.num_elements() * shapes[0][-2 if transposed else -1]
    if operation.type == "Einsum":
        terms = operation.get_attr("equation").decode().partition("->")[0].split(",")
        sizes = {
            axis: size for term, shape in zip(terms, shapes) for axis, size in zip(term, shape)
        }
        return math.prod(sizes.values())
    if operation.type == "Conv2D":
        return operation.outputs[0].shape.num_elements() * shapes[1][:3].num_elements()
    if operation.type == "DepthwiseConv2dNative":
        return operation.outputs[0].shape.num_elements() * shapes[1][:2].num_elements()
    return 0

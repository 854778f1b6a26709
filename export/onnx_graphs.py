"""A traced function as an ONNX graph, composites as fused nodes.

The steps: trace and freeze, convert with tf2onnx and the lowerings of `seqkeras.export.composites`,
name the dimensions, fold constants, rewrite, and check that the graph runs.
"""

import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from keras.src.export.tf2onnx_lib import patch_tf2onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.tools import symbolic_shape_infer

from seqkeras.export.composites import LOWERINGS, PORTABLE_LOWERINGS, op_handlers
from seqkeras.export.freezing import freeze
from seqkeras.export.graph import Graph
from seqkeras.export.rewrites import simplify
from seqkeras.serving.manifest import TensorSpec

__all__ = ["convert"]

OPSET = 17
IR_VERSION = 8  # both are read by every onnxruntime from 1.12 on
UNFOLDED = {"Identity", "Constant", "ConstantOfShape", "Expand", "Tile", "RandomNormal"}
GROWTH = 2  # a result with more than this multiple of its inputs' bytes is not folded


def convert(
    function: Callable[..., Any],
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    name: str,
    portable: bool = False,
) -> Graph:
    """Return a function of tensors as a `seqkeras.export.graph.Graph` that runs.

    Args:
        function: takes tensors, returns a dictionary: name -> tensor.
        inputs: a `TensorSpec` for each argument.
        outputs: a `TensorSpec` for each output.
        name: name of the graph, for errors.
        portable: whether the graph has standard ONNX operators only.

    Returns:
        The `Graph`. It has passed `onnx.checker`, shape inference and a session.

    Raises:
        ValueError: if a part of the function has no ONNX operator, or the graph does not run; it
            names the part.

    Example:
        >>> from keras import ops
        >>> from seqkeras.export.onnx_graphs import convert
        >>> from seqkeras.serving.manifest import TensorSpec
        >>> x, y = (TensorSpec(name, "float32", ("batch", 3)) for name in "xy")
        >>> convert(lambda x: {"y": ops.relu(2 * x)}, [x], [y], name="toy").node_counts()
        {'Mul': 1, 'Relu': 1}
    """
    lowerings = PORTABLE_LOWERINGS if portable else LOWERINGS
    frozen = freeze(function, inputs, lowerings)
    by_name = dict(zip(frozen.inputs, [spec.name for spec in inputs], strict=True))
    # Structured outputs are flattened in the order of their sorted names.
    by_name |= dict(zip(frozen.outputs, sorted(spec.name for spec in outputs), strict=True))
    graph = Graph(_to_onnx(frozen, by_name, name, lowerings), frozen.weights)
    declare(graph, inputs, outputs)
    _limit_loops(graph)
    _fold_constants(graph)
    with _not_running(name):
        simplify(graph, portable)
    graph.declare_domains()
    check(graph, name)
    return graph


def _to_onnx(frozen, by_name, name, lowerings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Keras's patch looks for np.object
        patch_tf2onnx()
    import tf2onnx
    from tf2onnx.optimizer import back_to_back_optimizer

    # tf2onnx's rule merges two Reshapes even if a 0 in the second means a size of the first.
    back_to_back_optimizer._func_map.pop(("Reshape",), None)
    _require_known_types(frozen.graph, name)
    with _logged_errors("tf2onnx") as errors:
        try:
            graph = tf2onnx.tfonnx.process_tf_graph(
                frozen.graph,
                opset=OPSET,
                input_names=[*frozen.weights, *frozen.inputs],
                output_names=frozen.outputs,
                tensors_to_rename=by_name,
                custom_op_handlers=op_handlers(
                    frozen.graph.as_graph_def(), frozen.weights, lowerings
                ),
            )
            # Otherwise each pass of tf2onnx works on a copy of the graph.
            model = tf2onnx.optimizer.optimize_graph(graph, catch_errors=False).make_model(name)
        except Exception as error:  # tf2onnx has no exception class; its log names the node
            raise ValueError(
                f"{name}: not every part has an ONNX operator: {_parts(errors)}{error}"
            ) from error
    if errors:
        each_alone = [error for error in errors if not error.startswith("Unsupported ops: ")]
        raise ValueError(f"{name}: not every part has an ONNX operator: {'; '.join(each_alone)}.")
    model.ir_version = IR_VERSION
    return model


def _require_known_types(graph, name):
    """Raise a ValueError for bfloat16 operations, which onnxruntime lacks on the CPU."""
    for operation in graph.get_operations():
        if any(tensor.dtype.name == "bfloat16" for tensor in operation.outputs):
            raise ValueError(
                f"{name}: {operation.name} is computed in bfloat16, which onnxruntime does not on "
                "a CPU; give its layer the dtype float32, and its weights, and save the run again."
            )


def _parts(errors):
    """Return the nodes, named after their layers, in error messages of tf2onnx."""
    names = re.findall(r"Failed to convert node '([^']+)'", "\n".join(errors))
    return f"{', '.join(dict.fromkeys(names))}: " if names else ""


@contextlib.contextmanager
def _logged_errors(logger_name):
    """Collect the errors that a library logs in a list, and keep them from the log."""
    errors = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(record.getMessage())
    logger = logging.getLogger(logger_name)
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield errors
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def declare(graph: Graph, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
    """Give a graph inputs and outputs in the order and with the sizes of their specs."""
    for values, specs in ((graph.model.graph.input, inputs), (graph.model.graph.output, outputs)):
        types = {value.name: value.type.tensor_type.elem_type for value in values}
        del values[:]
        for spec in specs:
            dtype = types.get(spec.name) or helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
            values.append(helper.make_tensor_value_info(spec.name, dtype, spec.shape))


def _limit_loops(graph):
    """Give loops without a trip count one, because shape inference fails without it."""
    loops = [node for node in graph.nodes if node.op_type == "Loop" and not node.input[0]]
    for node in loops:
        node.input[0] = "most_turns"
        graph.constants["most_turns"] = np.array(np.iinfo(np.int64).max)


def _fold_constants(graph):
    """Replace nodes by their values where all inputs are constants, as a transposed kernel's."""
    for node in list(graph.nodes):
        names = [name for name in node.input if name]
        values = [graph.constants.get(name) for name in names]
        if not values or any(value is None for value in values):
            continue
        if node.domain or node.op_type in UNFOLDED or any(a.HasField("g") for a in node.attribute):
            continue
        evaluator = ReferenceEvaluator(node, opsets={"": graph.model.opset_import[0].version})
        results = evaluator.run(None, dict(zip(names, values, strict=True)))
        if sum(array.nbytes for array in results) <= GROWTH * sum(array.nbytes for array in values):
            graph.constants.update(zip(node.output, results, strict=True))
            graph.nodes.remove(node)


def check(graph: Graph, name: str) -> None:
    """Check a graph: ONNX's checker, opening a session, and a type for each tensor."""
    check_that_it_runs(graph, name)
    with _not_running(name):
        inferred = graph.infer().graph
    typed = {value.name for value in [*inferred.value_info, *inferred.input, *inferred.output]}
    untyped = [out for node in inferred.node for out in node.output if out and out not in typed]
    if untyped:
        raise ValueError(f"{name}: ONNX shape inference leaves tensors untyped: {untyped}")
    graph.remember_shapes(inferred)


def check_that_it_runs(graph: Graph, name: str) -> None:
    """Check a graph: ONNX's checker, and opening a session."""
    with _not_running(name):
        onnx.checker.check_model(graph.skeleton(), full_check=True)
        graph.session()


@contextlib.contextmanager
def _not_running(name):
    """Raise exceptions of onnx, onnxruntime and shape inference as a ValueError."""
    try:
        with _logged_errors(symbolic_shape_infer.__name__):
            yield
    except Exception as error:  # they have no exception in common
        raise ValueError(f"{name}: not a graph that can run: {error}") from error

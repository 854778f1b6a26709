"""A traced function as an ONNX graph, composites as fused nodes.

The steps: trace with `composites.as_nodes`, freeze, convert with tf2onnx and the lowerings of
`export.composites`, name the dimensions, and prove that what came out is a graph that runs.
"""

import contextlib
import logging
import warnings

import numpy as np
import onnx
import onnxruntime
import tensorflow as tf
from keras.src.export.tf2onnx_lib import patch_tf2onnx
from tensorflow.python.framework.convert_to_constants import (
    convert_variables_to_constants_v2,
)

from export.composites import LOWERINGS, MICROSOFT, op_handlers
from export.graph import infer_shapes
from export.rewrites import simplify
from export.signatures import tensorflow_specs
from seqkeras import composites

OPSET = 17
IR_VERSION = 8  # both are read by every onnxruntime from 1.12 on


def convert(function, inputs, outputs, name):
    """An ONNX model of a function of tensors.

    Args:
        function: takes tensors by keyword, returns a dictionary of tensors.
        inputs, outputs: lists of `serving.manifest.TensorSpec`, with symbolic dimension names.
        name: of the graph.

    Returns:
        The `onnx.ModelProto`, checked by `onnx.checker`, shape inference and a session.

    Raises:
        ValueError: if a part of the function has no ONNX operator; it names the part.
    """
    frozen = _freeze(function, inputs)
    by_name = {tensor.name: spec.name for tensor, spec in zip(frozen.inputs, inputs, strict=True)}
    # Structured outputs are flattened in the order of their sorted names.
    ordered = sorted(spec.name for spec in outputs)
    by_name |= dict(zip([tensor.name for tensor in frozen.outputs], ordered, strict=True))
    model = _to_onnx(frozen, by_name, name)
    specs = {spec.name: spec for spec in [*inputs, *outputs]}
    for value in [*model.graph.input, *model.graph.output]:
        _set_shape(value, specs[value.name].shape)
    _put_in_order(model.graph.input, inputs)
    _put_in_order(model.graph.output, outputs)
    simplify(model)
    _check(model, name)
    return model


def _freeze(function, inputs):
    @tf.function(input_signature=tensorflow_specs(inputs), autograph=False)
    def traced(*tensors):
        with composites.as_nodes(LOWERINGS):
            named = {spec.name: tensor for spec, tensor in zip(inputs, tensors, strict=True)}
            return {key: tf.identity(value) for key, value in function(**named).items()}

    concrete = traced.get_concrete_function()
    return convert_variables_to_constants_v2(concrete, lower_control_flow=False)


def _to_onnx(frozen, by_name, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Keras's patch looks for np.object
        patch_tf2onnx()
    import tf2onnx

    with _logged_errors("tf2onnx") as errors:
        graph = tf2onnx.tfonnx.process_tf_graph(
            frozen.graph,
            opset=OPSET,
            input_names=[tensor.name for tensor in frozen.inputs],
            output_names=[tensor.name for tensor in frozen.outputs],
            tensors_to_rename=by_name,
            extra_opset=[onnx.helper.make_opsetid(MICROSOFT, 1)],
            custom_op_handlers=op_handlers(frozen.graph.as_graph_def()),
        )
        model = tf2onnx.optimizer.optimize_graph(graph).make_model(name)
    if errors:
        raise ValueError(f"{name}: not every part has an ONNX operator: {'; '.join(errors)}")
    model.ir_version = IR_VERSION
    if MICROSOFT not in {node.domain for node in model.graph.node}:
        _remove_opset(model, MICROSOFT)
    return model


def _remove_opset(model, domain):
    kept = [opset for opset in model.opset_import if opset.domain != domain]
    del model.opset_import[:]
    model.opset_import.extend(kept)


@contextlib.contextmanager
def _logged_errors(logger_name):
    """The errors that a library only logs, as a list; the log itself stays quiet."""
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


def _set_shape(value, shape):
    dimensions = value.type.tensor_type.shape
    del dimensions.dim[:]
    for size in shape:
        dimension = dimensions.dim.add()
        if isinstance(size, int):
            dimension.dim_value = size
        else:
            dimension.dim_param = size


def _put_in_order(values, specs):
    by_name = {value.name: value for value in values}
    ordered = [by_name[spec.name] for spec in specs]
    del values[:]
    values.extend(ordered)


def _check(model, name):
    """Prove the graph: the checker, shapes for every tensor, and a session that opens."""
    try:
        onnx.checker.check_model(model, full_check=True)
        inferred = infer_shapes(model)
        _open(model)
    except Exception as error:  # onnx and onnxruntime have no exception in common
        raise ValueError(f"{name}: not a graph that can run: {error}") from error
    typed = {value.name for value in inferred.graph.value_info}
    typed |= {value.name for value in [*inferred.graph.input, *inferred.graph.output]}
    untyped = [
        out for node in inferred.graph.node for out in node.output if out and out not in typed
    ]
    if untyped:
        raise ValueError(f"{name}: ONNX shape inference leaves tensors untyped: {untyped}")


def _open(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def node_counts(model):
    """How often each operator occurs, subgraphs included."""
    names, graphs = [], [model.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            names.append(node.op_type)
            graphs.extend(attribute.g for attribute in node.attribute if attribute.HasField("g"))
    return {str(name): int(count) for name, count in zip(*np.unique(names, return_counts=True))}

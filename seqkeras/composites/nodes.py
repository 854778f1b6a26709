"""A pure function of tensors that a traced graph can hold as one named node."""

import contextlib
import contextvars
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from keras import ops

_nodes = contextvars.ContextVar("nodes", default=None)


@contextlib.contextmanager
def as_nodes(names: Iterable[str]) -> Iterator[None]:
    """Trace each of the named composites as one named function node within this context.

    Such graphs are TensorFlow's: a composite that is called here needs that backend.

    Args:
        names: names of composites, such as "lstm" or "attention".

    Example:
        >>> from seqkeras.composites import as_nodes, tracing_nodes
        >>> with as_nodes(["gelu", "layer_norm"]):  # what is traced here holds a node for each call
        ...     print(tracing_nodes())
        True
    """
    token = _nodes.set(names)
    try:
        yield
    finally:
        _nodes.reset(token)


def tracing_nodes() -> bool:
    """Return whether the code runs in `as_nodes`, that is, while a graph for export is traced.

    Example:
        >>> from seqkeras.composites import tracing_nodes
        >>> tracing_nodes()  # a plain call computes operation by operation
        False
    """
    return _nodes.get() is not None


def composite(
    function: Callable[..., Any] | None = None, *, name: str | None = None, in_loops: bool = True
) -> Callable[..., Any]:
    """Make a pure function a composite: `@composite` or `@composite(...)`.

    Its positional arguments are tensors, lists of tensors, or None; its keyword-only ones options.

    Args:
        function: the function; None where the decorator has options.
        name: name of the composite; None for the function's name.
        in_loops: whether the body of a loop may hold a node of it. Weights enter a body as tensors
            that anything may have computed, and a fused recurrent operator needs their numbers.

    Returns:
        The composite, a function of the same arguments; with options and no function, a decorator.

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import composite
        >>> @composite
        ... def scaled(x, *, factor=2.0):
        ...     return factor * x
        >>> float(scaled(ops.ones(()), factor=3.0))
        3.0
    """
    if function is None:
        return functools.partial(composite, name=name, in_loops=in_loops)
    name = name or function.__name__
    signature = inspect.signature(function)
    options_of = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]

    @functools.wraps(function)
    def call(*args, **kwargs):
        if name not in (_nodes.get() or ()) or not (in_loops or _outside_loops()):
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        options = {option: bound.arguments.pop(option) for option in options_of}
        return _call_as_node(name, function, bound.arguments, options)

    return call


def _outside_loops():
    import tensorflow as tf
    from tensorflow.python.ops.control_flow_v2_func_graphs import WhileBodyFuncGraph

    graph = tf.compat.v1.get_default_graph()
    while graph is not None and not isinstance(graph, WhileBodyFuncGraph):
        graph = getattr(graph, "outer_graph", None)
    return graph is None


def _call_as_node(composite_name, function, arguments, options):
    import tensorflow as tf

    inputs = {name: ops.convert_to_tensor(value) for name, value in _flatten(arguments)}

    def body(**inputs):
        tensors = {
            name: [inputs[flat_name] for flat_name, _ in _flatten({name: value})]
            if isinstance(value, list)
            else inputs.get(name)
            for name, value in arguments.items()
        }
        # The scope keeps the names Identity, Identity_1, ... free for the node's own outputs.
        with as_nodes(()), tf.name_scope(composite_name):
            return function(**tensors, **options)

    node = tf.function(
        body,
        autograph=False,
        experimental_implements=json.dumps({"composite": composite_name, **options}),
        experimental_attributes={"_noinline": True},
    )
    # A frozen graph lacks the shapes of a function's results, unless the function sets them.
    return tf.nest.map_structure(
        lambda result: tf.ensure_shape(result, result.shape), node(**inputs)
    )


def _flatten(arguments):
    """Yield (name, tensor) pairs; a list's tensors are named after it, `forward_0`, `forward_1`,
    ..."""
    for name, value in arguments.items():
        if isinstance(value, list):
            yield from ((f"{name}_{index}", tensor) for index, tensor in enumerate(value))
        elif value is not None:
            yield name, value

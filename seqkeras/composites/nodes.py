"""A pure function of tensors that a traced graph can hold as one named node."""

import contextlib
import contextvars
import functools
import inspect
import json

from keras import ops

from seqkeras.attention.masks import lengths_of, padding_mask

_nodes = contextvars.ContextVar("nodes", default=())


@contextlib.contextmanager
def as_nodes(names):
    """Within this context each of the named composites is traced as one named function node."""
    token = _nodes.set(names)
    try:
        yield
    finally:
        _nodes.reset(token)


def composite(function):
    """Make a pure function a composite of that name.

    Its positional arguments are tensors, lists of tensors, or None; its keyword-only ones options.
    """
    signature = inspect.signature(function)
    options_of = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]

    @functools.wraps(function)
    def call(*args, **kwargs):
        if function.__name__ not in _nodes.get():
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        options = {name: bound.arguments.pop(name) for name in options_of}
        return _call_as_node(function, bound.arguments, options)

    return call


def _call_as_node(function, arguments, options):
    import tensorflow as tf

    masked = arguments.get("mask") is not None
    if masked:
        arguments = {**arguments, "mask": lengths_of(arguments["mask"])}
    inputs = {name: ops.convert_to_tensor(value) for name, value in _flatten(arguments)}

    def body(**inputs):
        given = {
            name: [inputs[each] for each, _ in _flatten({name: value})]
            if isinstance(value, list)
            else inputs.get(name)
            for name, value in arguments.items()
        }
        if masked:
            given["mask"] = padding_mask(given["mask"], ops.shape(given["sequence"])[1])
        with as_nodes(()):
            return function(**given, **options)

    node = tf.function(
        body,
        autograph=False,
        experimental_implements=json.dumps({"composite": function.__name__, **options}),
        experimental_attributes={"_noinline": True},
    )
    return node(**inputs)


def _flatten(arguments):
    """(name, tensor) pairs; a list's tensors are named after it, `forward_0`, `forward_1`, ..."""
    for name, value in arguments.items():
        if isinstance(value, list):
            yield from ((f"{name}_{index}", each) for index, each in enumerate(value))
        elif value is not None:
            yield name, value

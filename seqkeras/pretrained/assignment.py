"""Checked assignment: tensors of a file to the variables of a model, and back.

A family's name map is a list of `Link`, written once and used in both directions.
"""

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Callable

import keras
import numpy as np
from keras import ops
from keras.src.backend.common import global_state  # no public way leads to what is pending

PENDING = "uninitialized_variables"
FLOATS = ("float16", "bfloat16", "float32", "float64")
COLUMNS = 64  # of a matrix of which a cache holds so many rows


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file, of which only shape and dtype are known until it is read.

    Args:
        shape: a tuple.
        dtype: a name, as "float32".
        read: () -> the numbers, a NumPy array.
    """

    shape: tuple
    dtype: str
    read: Callable


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a tensor of theirs lies beside the variables of ours that it holds.

    Args:
        inputs: None where both have one shape; else theirs is a matrix, whose rows are so many
            leading axes of ours. Several variables stand side by side in it.
        transposed: whether its rows are the outputs, as in torch's `nn.Linear`.
        vector: whether a matrix of one row is a vector.
    """

    inputs: int | None = None
    transposed: bool = False
    vector: bool = False

    def shape_of_theirs(self, shapes):
        """The shape of theirs, by the shapes of ours."""
        if self.inputs is None:
            return shapes[0]
        rows = math.prod(shapes[0][: self.inputs])
        columns = sum(math.prod(shape[self.inputs :]) for shape in shapes)
        matrix = (columns, rows) if self.transposed else (rows, columns)
        return matrix[1:] if self.vector else matrix

    def to_theirs(self, arrays):
        """One array of theirs of the arrays of ours."""
        if self.inputs is None:
            return arrays[0]
        arrays = [each.reshape(math.prod(each.shape[: self.inputs]), -1) for each in arrays]
        joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
        joined = joined.T if self.transposed else joined
        return joined[0] if self.vector else joined

    def to_ours(self, array, shapes):
        """Arrays of ours, of these shapes, of the array of theirs."""
        if self.inputs is None:
            return [array]
        array = _transpose(array) if self.transposed else array
        ends = np.cumsum([math.prod(shape[self.inputs :]) for shape in shapes])
        parts = np.split(array, ends[:-1], axis=-1)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


SAME = Layout()
ROW = Layout(0)
VECTOR = Layout(0, vector=True)  # biases (N, H) of heads as (N H,)
MATRIX = Layout(1)  # a kernel (in, N, H) as (in, N H)
MATRIX_OF_HEADS = Layout(2)  # a kernel (N, H, out) as (N H, out)
LINEAR = Layout(1, transposed=True)
LINEAR_OF_HEADS = Layout(2, transposed=True)


@dataclasses.dataclass(frozen=True)
class Link:
    """One line of a name map.

    Args:
        name: of their tensor.
        variables: the Keras variables that it holds.
        layout: how they lie in it.
        aliases: names under which a file may hold it instead, or once more, as tied weights.
    """

    name: str
    variables: tuple
    layout: Layout = SAME
    aliases: tuple = ()

    @property
    def shape(self):
        """Of their tensor, by the shapes of our variables."""
        return self.layout.shape_of_theirs([tuple(each.shape) for each in self.variables])

    @property
    def names(self):
        """All under which a file may hold the tensor, the first one first."""
        return (self.name, *self.aliases)


def load_model(make, links, tensors, source, harmless=()):
    """Make a model whose variables start as the tensors of a file.

    No random numbers are drawn first, and one tensor after the other is read.

    Args:
        make: () -> the model, not built.
        links: the built model -> its name map.
        tensors: `Tensor`s by name.
        source: what they are of, for the error.
        harmless: regular expressions of names that need not be used.

    Returns:
        The model, built.

    Raises:
        ValueError: if tensors are missing, have another shape, are not floating-point numbers or
            have no use. One error lists them all, and nothing has been read.
    """
    with _starting_later():
        model = make()
        model.build(None)
        found = list(links(model))
        problems = find_problems(model, found, tensors, harmless)
        if problems:
            raise ValueError(
                f"{type(model).__name__}: {source} must hold its tensors, and no others; "
                f"received {len(problems)} that differ:\n  " + "\n  ".join(problems)
            )
        for each in found:
            _start_from(each, tensors)
    return model


@contextlib.contextmanager
def _starting_later():
    """Variables made within take memory, and start as something, when the block has ended.

    Keras keeps a list of them, and goes on with it at the end of any later scope: after a failure,
    or an interrupt, those of the block are taken off it.
    """
    before = list(global_state.get_global_attribute(PENDING, []))

    def forget():
        global_state.set_global_attribute(PENDING, before)

    try:
        with keras.StatelessScope():
            try:
                yield
            except BaseException:
                forget()  # or the end of the scope would start them
                raise
    except BaseException:
        forget()  # or those that a file's end or an interrupt left would stay
        raise


def find_problems(model, links, tensors, harmless=()):
    """Why tensors are not those of a model, a sentence for each; see `load_model`."""
    linked = {id(variable) for each in links for variable in each.variables}
    problems = [
        f"{variable.path}: a weight that the name map leaves out"
        for variable in model.weights
        if id(variable) not in linked
    ]
    for each in links:
        name = next((name for name in each.names if name in tensors), None)
        problems += [f"{each.name}: missing"] if name is None else _differs(each, name, tensors)
    known = {name for each in links for name in each.names}
    ignored = re.compile("|".join(harmless) if harmless else r"(?!)")
    problems += [
        f"{name}: has no use"
        for name in tensors
        if name not in known and not ignored.fullmatch(name)
    ]
    return problems


def tensors_of(links):
    """The way back: arrays by the names of theirs."""
    arrays = {}
    for each in links:
        ours = [ops.convert_to_numpy(variable.value) for variable in each.variables]
        arrays[each.name] = np.ascontiguousarray(each.layout.to_theirs(ours))
    return arrays


def _transpose(matrix):
    """Its transpose, contiguous, some columns at a time: NumPy's own way is three times slower."""
    transposed = np.empty(matrix.shape[::-1], matrix.dtype)
    for start in range(0, len(matrix), COLUMNS):
        transposed[:, start : start + COLUMNS] = matrix[start : start + COLUMNS].T
    return transposed


def _differs(link, name, tensors):
    tensor, shape = tensors[name], link.shape
    if tuple(tensor.shape) != shape:
        return [f"{name}: has shape {tuple(tensor.shape)}, must have {shape}"]
    if tensor.dtype not in FLOATS:
        return [f"{name}: holds {tensor.dtype}, must hold floating-point numbers"]
    return []


def _start_from(link, tensors):
    """Let the variables of a link start as their tensor."""
    shapes = [tuple(each.shape) for each in link.variables]

    @functools.cache  # read once for all of them, and dropped when the last one has its part
    def parts():
        name = next(name for name in link.names if name in tensors)
        return link.layout.to_ours(tensors[name].read(), shapes)

    for place, variable in enumerate(link.variables):
        _start_as(variable, lambda place=place: parts()[place])


def _start_as(variable, read):
    def initializer(shape, dtype=None):
        return ops.convert_to_tensor(np.ascontiguousarray(read()), dtype)

    # Keras draws it when the scope ends; it has no public way to set what is not drawn yet.
    variable._initializer = initializer

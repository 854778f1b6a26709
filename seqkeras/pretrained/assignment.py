"""Checked assignment of a file's tensors to a model's variables, and back.

A family's name map is a list of `Link`, written once and used in both directions.
"""

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import keras
import numpy as np
from keras import ops

from seqkeras.values import forget_variables_from_now

FLOATS = ("float16", "bfloat16", "float32", "float64")
COLUMNS = 64  # of a transpose at once: a cache holds as many rows of the matrix


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file; only shape and dtype are known until it is read.

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
    """The mapping of a file's tensor to the variables of a model.

    Args:
        inputs: None if both have the same shape; else the tensor is a matrix whose rows are that
            many leading axes of the variables. It may hold several variables side by side.
        transposed: whether its rows are the outputs, as in torch's `nn.Linear`.
        vector: whether a matrix of one row is a vector.
        factor: what the tensor's numbers are multiplied by to be those of the variables; unless it
            is a power of two, a number that is loaded and saved may differ in its last bit.
    """

    inputs: int | None = None
    transposed: bool = False
    vector: bool = False
    factor: float = 1.0

    def shape_of_theirs(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the shape of the tensor, from the shapes of the variables."""
        if self.inputs is None:
            return shapes[0]
        rows = math.prod(shapes[0][: self.inputs])
        columns = sum(math.prod(shape[self.inputs :]) for shape in shapes)
        matrix = (columns, rows) if self.transposed else (rows, columns)
        return matrix[1:] if self.vector else matrix

    def to_theirs(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Return the tensor's array, from the arrays of the variables."""
        if self.factor != 1:
            arrays = [array / np.asarray(self.factor, array.dtype) for array in arrays]
        if self.inputs is None:
            return arrays[0]
        arrays = [array.reshape(math.prod(array.shape[: self.inputs]), -1) for array in arrays]
        joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
        joined = joined.T if self.transposed else joined
        return joined[0] if self.vector else joined

    def to_ours(self, array: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """Return the arrays of variables of these shapes, from the tensor's array."""
        if self.factor != 1:
            array = array * np.asarray(self.factor, array.dtype)
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
        name: name of the tensor.
        variables: the Keras variables that it holds.
        layout: how the tensor holds them.
        aliases: other names of the tensor in files, also for tied weights.
    """

    name: str
    variables: tuple
    layout: Layout = SAME
    aliases: tuple = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.layout.shape_of_theirs([tuple(variable.shape) for variable in self.variables])

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the tensor in files, the preferred one first."""
        return (self.name, *self.aliases)


def load_model(
    make: Callable[[], keras.Model],
    links: Callable[[keras.Model], Sequence[Link]],
    tensors: Mapping[str, Tensor],
    source: object,
    harmless: Iterable[str] = (),
) -> keras.Model:
    """Make a model whose variables are initialized with the tensors of a file.

    No random numbers are drawn, and tensors are read one by one.

    Args:
        make: () -> the model, not built.
        links: the built model -> its name map.
        tensors: `Tensor`s by name.
        source: source of the tensors, for errors.
        harmless: regular expressions of names that need not be used.

    Returns:
        The model, built.

    Raises:
        ValueError: if tensors are missing, have another shape, are not floating-point numbers or
            are not used. One error lists them all, before any tensor is read.
    """
    with _starting_later():
        model = make()
        model.build(None)
        all_links = list(links(model))
        problems = find_problems(model, all_links, tensors, harmless)
        if problems:
            raise ValueError(
                f"{type(model).__name__}: {source} must hold its tensors, and no others; "
                f"received {len(problems)} that differ:\n  " + "\n  ".join(problems)
            )
        for link in all_links:
            _start_from(link, tensors)
    return model


@contextlib.contextmanager
def _starting_later():
    """Yield allocate and initialize variables made in this block when the block has ended.

    After a failure, or an interrupt, the variables of the block never are.
    """
    forget = forget_variables_from_now()
    try:
        with keras.StatelessScope():
            try:
                yield
            except BaseException:
                forget()  # or the end of the scope would initialize them
                raise
    except BaseException:
        forget()  # removes those left after an error or an interrupt
        raise


def find_problems(
    model: keras.Model,
    links: Sequence[Link],
    tensors: Mapping[str, Tensor],
    harmless: Iterable[str] = (),
) -> list[str]:
    """Return reasons, as sentences, why tensors do not fit a model; see `load_model`."""
    linked = {id(variable) for link in links for variable in link.variables}
    problems = [
        f"{variable.path}: a weight that the name map leaves out"
        for variable in model.weights
        if id(variable) not in linked
    ]
    for link in links:
        name = next((name for name in link.names if name in tensors), None)
        problems += [f"{link.name}: missing"] if name is None else _differs(link, name, tensors)
    known = {name for link in links for name in link.names}
    ignored = re.compile("|".join(harmless) if harmless else r"(?!)")
    problems += [
        f"{name}: has no use"
        for name in tensors
        if name not in known and not ignored.fullmatch(name)
    ]
    return problems


def tensors_of(links: Sequence[Link]) -> dict[str, np.ndarray]:
    """Return the arrays of a model, by the names of tensors."""
    arrays = {}
    for link in links:
        ours = [ops.convert_to_numpy(variable.value) for variable in link.variables]
        arrays[link.name] = np.ascontiguousarray(link.layout.to_theirs(ours))
    return arrays


def _transpose(matrix):
    """Return the contiguous transpose, by blocks of columns, three times as fast as NumPy's own."""
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
    """Initialize the variables of a link with their tensor."""
    shapes = [tuple(variable.shape) for variable in link.variables]

    @functools.cache  # read once for all variables, and dropped after the last one
    def parts():
        name = next(name for name in link.names if name in tensors)
        return link.layout.to_ours(tensors[name].read(), shapes)

    for index, variable in enumerate(link.variables):
        _start_as(variable, lambda index=index: parts()[index])


def _start_as(variable, read):
    def initializer(shape, dtype=None):
        return ops.convert_to_tensor(np.ascontiguousarray(read()), dtype)

    # Keras initializes it when the scope ends; there is no public way to set it before.
    variable._initializer = initializer

"""Inputs of numbers: the frames of a recording or a video, an image, the values of a series."""

from collections.abc import Mapping

import numpy as np

from ..checks import shown
from ..manifest import MANIFEST, BundleError
from ..session import FRAMES
from ..streams import Chunk
from .inputs import too_long
from .model import Packing

PADDING = frozenset({"lengths", "padding_mask"})  # either input marks the padding


def takes_frames(manifest, role):
    """Return whether a bundle's graph reads frames rather than text."""
    graph = manifest.graphs.get(role)
    return graph is not None and any(spec.name == FRAMES for spec in graph.inputs)


class ArrayReader:
    """Converts values to arrays of a model's input, in float32.

    Args:
        shape: shape of an array: its length, and fixed sizes. A length that is no integer is open.
        limit: the greatest length, where it is open.
        unit: the name of an array's elements, for errors.

    Attributes:
        limit: the greatest length of an array.
    """

    def __init__(self, shape, limit, unit):
        length, *self._sizes = shape
        self._fixed = length if isinstance(length, int) else None
        self.limit = self._fixed or limit
        self._unit = unit

    @classmethod
    def of_graph(cls, folder, manifest, role, name, unit):
        """Return the reader for an input of a bundle's graph.

        Args:
            folder: the bundle.
            manifest: its `Manifest`.
            role: role of the graph.
            name: name of its input: (batch, length, ...) with fixed sizes after the length; or
                fixed sizes only, of which the first is the length of every array.
            unit: see the class.

        Raises:
            BundleError: if the input has no such shape.
        """
        [spec] = [tensor for tensor in manifest.graphs[role].inputs if tensor.name == name]
        shape = spec.shape[1:]
        if not shape or not all(isinstance(size, int) for size in shape[1:]):
            raise BundleError(
                f"{name} must have an axis for the batch, one for the length, and fixed sizes for "
                "all others",
                where=folder,
                subject=MANIFEST,
            )
        return cls(shape, manifest.limits.source_length, unit)

    @property
    def shape(self):
        """The shape of an array; an open length is a name."""
        return (self._fixed or "length", *self._sizes)

    def read(self, value, name, truncate=False, keep_last=False):
        """Return a value as an array of this shape; a last axis of size 1 is optional.

        Args:
            value: an array, or nested sequences.
            name: of it, for errors.
            truncate: cut an array over the limit.
            keep_last: cut at the beginning.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        array = numbers(value, name)
        if array.ndim == len(self._sizes) and self._sizes[-1:] == [1]:
            array = array[..., np.newaxis]
        elif array.ndim == 2 + len(self._sizes) and array.shape[-1] == 1:
            array = array[..., 0]
        fits = array.ndim == 1 + len(self._sizes) and list(array.shape[1:]) == self._sizes
        if fits and truncate:
            array = array[-self.limit :] if keep_last else array[: self.limit]
        if not fits or not len(array) or (self._fixed or len(array)) != len(array):
            expected = ", ".join(map(str, self.shape)) + "," * (not self._sizes)
            raise ValueError(
                f"{name} must have shape ({expected}); received {array.shape}. "
                "A list is several inputs: give one as an array or a tuple."
            )
        if len(array) > self.limit:
            raise too_long(name, len(array), self.limit, self._unit)
        return array

    def read_chunk(self, value, name):
        """Return some frames of a stream, (frames, sizes); see `read`."""
        array = numbers(value, name)
        if (
            array.ndim != 1 + len(self._sizes)
            or [*array.shape[1:]] != self._sizes
            or not len(array)
        ):
            expected = ", ".join(map(str, ("frames", *self._sizes))) + "," * (not self._sizes)
            raise ValueError(
                f"{name} must have shape ({expected}), one frame at least; received {array.shape}."
            )
        return array


def padded(name, rows):
    """Return arrays as a batch under a name, padded with zeros, with lengths and padding mask."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    batch = np.zeros((len(rows), lengths.max(), *rows[0].shape[1:]), "float32")
    for target, row in zip(batch, rows):
        target[: len(row)] = row
    real = np.arange(batch.shape[1]) < lengths[:, np.newaxis]
    return {name: batch, "lengths": lengths, "padding_mask": real}


def frame_arrays(rows):
    """Return a batch of frames as arrays by name."""
    return padded(FRAMES, rows)


# A model without lengths and padding_mask can not recognise padding, so it gets none.
PACKED_FRAMES = Packing(
    frame_arrays,
    frozenset({FRAMES}),
    PADDING,
    padded_by=PADDING,
    labels=lambda row: {FRAMES: [str(index) for index in range(len(row))]},
)


class FrameReader:
    """Frames, as an array, as rows of a table or one row, or as a dictionary of "frames", to
    arrays.

    Args:
        shape, limit: see `ArrayReader`.
        rows: the `serving.rows.Rows` of a table whose rows are frames; None for numbers.
    """

    unit, fields, packing = FRAMES, (FRAMES,), PACKED_FRAMES

    def __init__(self, shape, limit, rows=None):
        self._reader = ArrayReader(shape, limit, FRAMES)
        self._rows = rows

    @classmethod
    def of_graph(cls, folder, manifest, role, rows=None):
        """Return the reader for the graph of a role.

        Raises:
            BundleError: if its input has another shape.
        """
        reader = ArrayReader.of_graph(folder, manifest, role, FRAMES, FRAMES)
        if rows is not None and reader.shape[1:] != (rows.num_features,):
            raise BundleError(
                f"settings.rows are of {rows.num_features} numbers a row; the graph takes frames "
                f"of shape {reader.shape}",
                where=folder,
                subject=MANIFEST,
            )
        return cls(reader.shape, reader.limit, rows)

    def read(self, value, name, truncate=False):
        """Return the array of one input; see `ArrayReader`. A category that is unknown is refused,
        for the answer has no field that could tell of it."""
        if isinstance(value, dict) and set(value) == {FRAMES}:
            value = value[FRAMES]
        if self._rows is not None:
            rows = (value,) if isinstance(value, Mapping) else value  # one row
            value, _ = self._rows.window(rows, name)
            if unknown := self._rows.unknown(rows, name):
                raise ValueError(str(unknown[0]))
        return self._reader.read(value, name, truncate)

    def follow(self, value, name, memory):
        """Return the `Chunk` of some frames that follow others; see `read`."""
        if self._rows is not None:
            rows, (value, _, memory) = value, self._rows.following(value, name, memory)
            if unknown := self._rows.unknown(rows, name):
                raise ValueError(str(unknown[0]))
        return Chunk({FRAMES: self._reader.read_chunk(value, name)}, memory)


def numbers(value, name):
    """Return numbers as a float32 array.

    Raises:
        ValueError: if the value is not numeric, or not finite.
    """
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"{raw.dtype} is no kind of real numbers")
        if raw.dtype == np.float32:
            array = raw
        else:
            with np.errstate(over="ignore"):
                array = raw.astype("float32")
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers; received {shown(value)}.") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers in float32; received {shown(value)}.")
    return array

"""The state of an attending decoder in buffers, with room for the tokens to come.

A step's graph writes new keys and values behind those of each row, into the buffer that it reads.
So no step copies what is there, and rows of one step may have different lengths.
"""

import numpy as np
from onnxruntime import OrtValue

ROLE = "decoder_slots"
LENGTHS = "cache_lengths"  # the input: the number of tokens in each row
CAPACITY = "capacity"  # the axis of a cache along its tokens
SOURCE_LENGTH = "source_length"  # the axis that is padded where sources of several batches meet
LEAST_ROOM = 64  # tokens


class Slots:
    """The caches of B sources with K beams, and the entries of the sources.

    The K rows of a source lie together. A beam that goes on stays in its row; a second one that
    continues it takes the row of one that ended; the last source moves to the place of one that
    left. So few rows are copied.

    Args:
        specs: name -> `TensorSpec` of a cache, (rows, N, capacity, H).
        source_specs: name -> `TensorSpec` of an entry of a source, (batch, ...).
        source: name -> array of these.
        num_sources: B; each source has one beam without any token.
        expected: the number of tokens that rows may have at last.

    Attributes:
        lengths: the number of tokens in each row, as the rows lie.
        rows: (B, K) the row of each beam.
        source: name -> array of each entry of the sources, which lie as their rows do.
    """

    def __init__(self, specs, source_specs, source, num_sources, expected=0):
        self._specs, self._source_specs = specs, source_specs
        self.source = dict(source)
        self.lengths = np.zeros(num_sources, np.int64)
        self.rows = np.arange(num_sources)[:, np.newaxis]
        self._caches = {name: _buffer(spec, num_sources, 0) for name, spec in specs.items()}
        self._values, self._num_bound = {}, 0
        self._expected = expected

    def __repr__(self):
        return f"Slots({', '.join(self._caches)}: {len(self.lengths)} rows, {self._size[1]} places)"

    @property
    def num_beams(self):
        """K."""
        return self.rows.shape[1]

    def values(self):
        """Return name -> OrtValue of the caches, in the buffers, which a run may write to."""
        if not self._values or self._num_bound != len(self.lengths):
            self._num_bound = len(self.lengths)
            self._values = {
                name: OrtValue.ortvalue_from_numpy(cache[: self._num_bound])
                for name, cache in self._caches.items()
            }
        return self._values

    def row(self, row):
        """Return name -> OrtValue of the caches of one row."""
        return {
            name: OrtValue.ortvalue_from_numpy(cache[row : row + 1])
            for name, cache in self._caches.items()
        }

    def follow(self, beam_index, num_tokens=1):
        """Keep the beams that continue, as the step contract of `serving.decoding` has them, with
        room for further tokens.

        Args:
            beam_index: (B', K') for each beam the number of the one that it continues, source *
                K + beam.
            num_tokens: how many tokens follow.
        """
        room = self._room_for(int(self.lengths.max(initial=0)) + num_tokens)
        if not self._is_same(beam_index):
            parents = self.rows.ravel()[beam_index]
            sources = beam_index[:, 0] // self.num_beams
            if beam_index.shape[1] != self.num_beams or (np.diff(sources) <= 0).any():
                self._gather(parents, room)
            else:
                self._reorder(parents)
        rows, had = self._size
        if room > had:
            self._resize(rows, room)

    def _is_same(self, beam_index):
        """Return whether each beam continues itself, told for one beam a source."""
        count = len(self.rows)
        return beam_index.shape == (count, 1) and (beam_index[:, 0] == np.arange(count)).all()

    def _room_for(self, num_tokens):
        """Return the room of buffers that hold so many tokens: as it is, or twice as much as is
        needed, or all that is expected if that is not much more."""
        room = self._size[1]
        if num_tokens <= room:
            return room
        room = max(2 * num_tokens, LEAST_ROOM)
        return self._expected if num_tokens <= self._expected <= 2 * room else room

    def _reorder(self, parents):
        """Let beams continue rows of their own sources, some of which have left."""
        places, beams = np.divmod(parents, self.num_beams)
        places = places[:, 0]
        if self.num_beams > 1:
            beams, again = _without_repeats(beams)
            rows = self.num_beams * places[:, np.newaxis] + beams
            self._copy(rows[again], parents[again])
        self._close_ranks(places, beams)

    def join(self, other):
        """Append the sources of others with as many beams, which are of no use then.

        Nothing changes if there is no memory for them.
        """
        source = {
            name: _joined(self.source[name], other.source[name], spec)
            for name, spec in self._source_specs.items()
        }
        begin, more = len(self.lengths), len(other.lengths)
        rows, room = self._size
        room = max(room, other._size[1])
        if begin + more > rows or room > self._size[1]:
            self._resize(max(begin + more, 2 * rows if begin + more > rows else rows), room)
        longest = other.lengths.max(initial=0)
        for name, cache in self._caches.items():
            cache[begin : begin + more, :, :longest] = other._caches[name][:more, :, :longest]
        self.lengths = np.concatenate([self.lengths, other.lengths])
        self.rows = np.concatenate([self.rows, begin + other.rows])
        self.source = source
        self._expected = max(self._expected, other._expected)

    @property
    def _size(self):
        """The number of rows, and the room for tokens."""
        shape = next(iter(self._caches.values())).shape
        return shape[0], shape[2]

    def _gather(self, parents, room):
        """Let each row of new buffers continue one of the old."""
        old, longest = self._caches, self.lengths.max(initial=0)
        places = parents[:, 0] // self.num_beams
        flat = parents.ravel()
        self._caches = {name: _buffer(spec, flat.size, room) for name, spec in self._specs.items()}
        for name, cache in self._caches.items():
            cache[:, :, :longest] = old[name][flat, :, :longest]
        self.lengths = self.lengths[flat]
        self.rows = np.arange(flat.size).reshape(parents.shape)
        self.source = {name: entry[places] for name, entry in self.source.items()}
        self._values = {}

    def _close_ranks(self, places, beams):
        """Let sources that lie behind the others take the places that are free among them."""
        num_sources, num_beams = beams.shape
        last = np.flatnonzero(places >= num_sources)
        if last.size:
            free = np.setdiff1d(np.arange(num_sources), places)
            within = np.arange(num_beams)
            self._copy(
                (num_beams * free[:, np.newaxis] + within).ravel(),
                (num_beams * places[last, np.newaxis] + within).ravel(),
            )
            for entry in self.source.values():
                entry[free] = entry[places[last]]
            places[last] = free
        self.lengths = self.lengths[: num_sources * num_beams]
        self.source = {name: entry[:num_sources] for name, entry in self.source.items()}
        self.rows = num_beams * places[:, np.newaxis] + beams

    def _copy(self, to, rows):
        """Copy rows to others."""
        self.lengths[to] = self.lengths[rows]
        pairs = [*zip(to.tolist(), rows.tolist(), self.lengths[to].tolist())]
        for cache in self._caches.values():
            for new, row, length in pairs:  # an index of all of them would copy twice
                cache[new, :, :length] = cache[row, :, :length]

    def _resize(self, rows, room):
        """Move the caches to larger buffers."""
        count, longest = len(self.lengths), self.lengths.max(initial=0)
        buffers = {name: _buffer(spec, rows, room) for name, spec in self._specs.items()}
        for name, larger in buffers.items():
            larger[:count, :, :longest] = self._caches[name][:count, :, :longest]
            self._caches[name] = larger
        self._values = {}


def _buffer(spec, rows, room):
    return np.empty((rows, spec.shape[1], room, spec.shape[3]), spec.dtype)


def _without_repeats(beams):
    """Give each beam of a source a row of its own.

    Args:
        beams: (B, K) the row, among the source's, of the beam that each continues.

    Returns:
        (B, K) rows: that of the continued beam for the first that continues it, a free one for the
        others; and booleans, True for these others.
    """
    again = np.tril(beams[:, :, np.newaxis] == beams[:, np.newaxis], -1).any(axis=2)
    taken = np.zeros(beams.shape, bool)
    np.put_along_axis(taken, beams, True, axis=1)
    rows = beams.copy()
    rows[again] = np.nonzero(~taken)[1]
    return rows, again


def _joined(entry, other, spec):
    """Return two arrays as one along the batch, with sources padded by zeros to one length."""
    arrays = [entry, other]
    if SOURCE_LENGTH in spec.shape:
        axis = spec.shape.index(SOURCE_LENGTH)
        most = max(array.shape[axis] for array in arrays)
        for index, array in enumerate(arrays):
            if array.shape[axis] < most:
                widths = [(0, 0)] * array.ndim
                widths[axis] = 0, most - array.shape[axis]
                arrays[index] = np.pad(array, widths)
    return np.concatenate(arrays)

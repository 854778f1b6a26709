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
UNIT = 16  # the room of sources that meet is a multiple of it
SMALL = 4  # buffers of so many times what they need are too large


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
    """

    def __init__(self, specs, source_specs, source, num_sources, expected=0):
        self.lengths = np.zeros(num_sources, np.int64)
        self.rows = np.arange(num_sources)[:, np.newaxis]
        empty = {
            name: np.empty((num_sources, spec.shape[1], 0, spec.shape[3]), spec.dtype)
            for name, spec in specs.items()
        }
        self._caches = _Buffers(specs, CAPACITY, empty)
        self._entries = _Buffers(source_specs, SOURCE_LENGTH, source, pads=True)
        # For each source, in the order of the buffers.
        self._expected = np.full(num_sources, expected)
        self._source_lengths = np.full(num_sources, self._entries.room)
        self._values, self._num_bound = {}, 0

    def __repr__(self):
        names, room = ", ".join(self._caches.arrays), self._caches.room
        return f"Slots({names}: {len(self.lengths)} rows, {room} places)"

    @property
    def num_beams(self):
        """K."""
        return self.rows.shape[1]

    @property
    def source(self):
        """name -> array of each entry of the sources, which lie as their rows do."""
        return {name: entry[: len(self.rows)] for name, entry in self._entries.arrays.items()}

    @property
    def num_bytes(self):
        """The bytes of all buffers."""
        return self._caches.num_bytes + self._entries.num_bytes

    def values(self):
        """Return name -> OrtValue of the caches, in the buffers, which a run may write to."""
        if not self._values or self._num_bound != len(self.lengths):
            self._num_bound = len(self.lengths)
            self._values = {
                name: OrtValue.ortvalue_from_numpy(cache[: self._num_bound])
                for name, cache in self._caches.arrays.items()
            }
        return self._values

    def row(self, row):
        """Return name -> OrtValue of the caches of one row."""
        return {
            name: OrtValue.ortvalue_from_numpy(cache[row : row + 1])
            for name, cache in self._caches.arrays.items()
        }

    def follow(self, beam_index, num_tokens=1):
        """Keep the beams that continue, as the step contract of `serving.decoding` has them, with
        room for further tokens.

        Args:
            beam_index: (B', K') for each beam the number of the one that it continues, source *
                K + beam.
            num_tokens: how many tokens follow.
        """
        is_same = self._is_same(beam_index)
        if not is_same:
            parents = self.rows.ravel()[beam_index]
            sources = beam_index[:, 0] // self.num_beams
            if beam_index.shape[1] != self.num_beams or (np.diff(sources) <= 0).any():
                self._gather(parents, num_tokens)
            else:
                self._reorder(parents)
        if not is_same or self._longest + num_tokens > self._caches.room:
            self._fit(num_tokens)

    def trim(self):
        """Let go of memory that nothing needs."""
        self._fit(1, small=1)

    def _is_same(self, beam_index):
        """Return whether each beam continues itself, told for one beam a source."""
        count = len(self.rows)
        return beam_index.shape == (count, 1) and (beam_index[:, 0] == np.arange(count)).all()

    def _fit(self, num_tokens, small=SMALL):
        """Move to buffers of other sizes if rows need more, or `small` times less."""
        count, longest = len(self.lengths), self._longest
        rows, room = self._caches.rows, self._room_for(longest + num_tokens, small)
        if rows > small * count:
            rows = count
        if (rows, room) != (self._caches.rows, self._caches.room):
            self._set_caches(self._caches.moved(slice(count), rows, room, longest))
        count, longest = len(self.rows), int(self._source_lengths.max(initial=0))
        rows, room = self._entries.rows, self._entries.room
        if rows > small * count or room > small * longest:
            self._entries = self._entries.moved(slice(count), count, longest, longest)

    @property
    def _longest(self):
        return int(self.lengths.max(initial=0))

    def _room_for(self, num_tokens, small=SMALL):
        """Return the room of buffers that hold so many tokens: as it is, or twice as much as is
        needed, or all that is expected if that is not much more."""
        room, expected = self._caches.room, int(self._expected.max(initial=0))
        if num_tokens <= room <= small * max(num_tokens, expected, LEAST_ROOM):
            return room
        room = max(2 * num_tokens, LEAST_ROOM)
        return expected if num_tokens <= expected <= 2 * room else room

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
        caches = self._caches.with_room(
            len(self.lengths), len(other.lengths), self._longest, other._caches.room
        )
        longest = int(self._source_lengths.max(initial=0))
        room = other._entries.room
        if room > self._entries.room:
            room = -(-room // UNIT) * UNIT
        entries = self._entries.with_room(len(self.rows), len(other.rows), longest, room)
        caches.put(len(self.lengths), other._caches, len(other.lengths), other._longest)
        entries.put(len(self.rows), other._entries, len(other.rows), other._entries.room)
        self._set_caches(caches)
        self._entries = entries
        self.rows = np.concatenate([self.rows, len(self.lengths) + other.rows])
        self.lengths = np.concatenate([self.lengths, other.lengths])
        self._expected = np.concatenate([self._expected, other._expected])
        self._source_lengths = np.concatenate([self._source_lengths, other._source_lengths])

    def _gather(self, parents, num_tokens):
        """Let each row of new buffers continue one of the old."""
        places = parents[:, 0] // self.num_beams
        flat = parents.ravel()
        room = self._room_for(self._longest + num_tokens)
        self._set_caches(self._caches.moved(flat, flat.size, room, self._longest))
        self.lengths = self.lengths[flat]
        self.rows = np.arange(flat.size).reshape(parents.shape)
        if not np.array_equal(places, np.arange(self._entries.rows)):
            room = self._entries.room
            self._entries = self._entries.moved(places, len(places), room, room)
        self._expected, self._source_lengths = self._expected[places], self._source_lengths[places]

    def _close_ranks(self, places, beams):
        """Let sources that lie behind the others take the places that are free among them."""
        num_sources, num_beams = beams.shape
        last = np.flatnonzero(places >= num_sources)
        if last.size:
            free = np.setdiff1d(np.arange(num_sources), places)
            within, moved = np.arange(num_beams), places[last]
            self._copy(
                (num_beams * free[:, np.newaxis] + within).ravel(),
                (num_beams * moved[:, np.newaxis] + within).ravel(),
            )
            self._entries.copy(free, moved)
            for numbers in (self._expected, self._source_lengths):
                numbers[free] = numbers[moved]
            places[last] = free
        self.lengths = self.lengths[: num_sources * num_beams]
        self._expected = self._expected[:num_sources]
        self._source_lengths = self._source_lengths[:num_sources]
        self.rows = num_beams * places[:, np.newaxis] + beams

    def _copy(self, to, rows):
        """Copy rows to others."""
        self.lengths[to] = self.lengths[rows]
        self._caches.copy(to, rows, self.lengths[to])

    def _set_caches(self, caches):
        if caches is not self._caches:
            self._caches, self._values = caches, {}


class _Buffers:
    """Arrays with room for further rows, and for longer ones.

    Args:
        specs: name -> `TensorSpec`.
        axis: the name of the axis along which rows have lengths of their own; not all need have it.
        arrays: name -> array.
        pads: whether there must be zeros behind each row.
    """

    def __init__(self, specs, axis, arrays, pads=False):
        self._specs, self._axis, self._pads = specs, axis, pads
        self.arrays = {name: arrays[name] for name in specs}
        self._axes = {
            name: spec.shape.index(axis) for name, spec in specs.items() if axis in spec.shape
        }

    @property
    def rows(self):
        """The number of rows for which there is room."""
        return next((len(array) for array in self.arrays.values()), 0)

    @property
    def room(self):
        """The length for which there is room."""
        return next((self.arrays[name].shape[axis] for name, axis in self._axes.items()), 0)

    @property
    def num_bytes(self):
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def moved(self, kept, rows, room, longest):
        """Return buffers of another size, whose first rows are those that are kept."""
        arrays, make = {}, np.zeros if self._pads else np.empty
        for name, array in self.arrays.items():
            shape = [rows, *array.shape[1:]]
            if name in self._axes:
                shape[self._axes[name]] = room
            arrays[name] = make(shape, array.dtype)
            part = array[self._index(name, kept, longest)]
            arrays[name][self._index(name, slice(len(part)), longest)] = part
        return _Buffers(self._specs, self._axis, arrays, self._pads)

    def with_room(self, count, more, longest, room):
        """Return these buffers, or larger ones, with room for more rows behind so many."""
        rows, room = self.rows, max(self.room, room)
        if count + more > rows:
            rows = max(count + more, rows + rows // 2)
        if (rows, room) == (self.rows, self.room):
            return self
        return self.moved(slice(count), rows, room, longest)

    def put(self, begin, other, count, longest):
        """Copy the first rows of others to the rows from `begin` on."""
        rows = slice(begin, begin + count)
        for name, array in self.arrays.items():
            if self._pads and self.room > longest:
                array[rows] = 0
            array[self._index(name, rows, longest)] = other.arrays[name][
                self._index(name, slice(count), longest)
            ]

    def copy(self, to, rows, lengths=None):
        """Copy rows to others, up to their lengths."""
        lengths = [self.room] * len(to) if lengths is None else lengths.tolist()
        pairs = [*zip(to.tolist(), rows.tolist(), lengths)]
        for name, array in self.arrays.items():
            for new, row, length in pairs:  # an index of all of them would copy twice
                array[self._index(name, new, length)] = array[self._index(name, row, length)]

    def _index(self, name, rows, length):
        """Return the index of rows up to a length."""
        axis = self._axes.get(name)
        return rows if axis is None else (rows, *[slice(None)] * (axis - 1), slice(length))


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

"""`serving.slots` beside copies of whole states, for random ways of beams and sources."""

import numpy as np
import pytest

from seqkeras.serving import slots as slots_module
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.slots import Slots

HEADS, HEAD_DIM = 2, 3
CACHES = {
    name: TensorSpec(name, "float32", ("rows", HEADS, "capacity", HEAD_DIM))
    for name in ("key_0", "value_0")
}
SOURCES = {
    "source_key_0": TensorSpec("source_key_0", "float32", ("batch", 1, "source_length", 2)),
    "source_mask": TensorSpec("source_mask", "bool", ("batch", "source_length")),
}


class Copies:
    """The same state with a list of rows for each beam, copied at every step."""

    def __init__(self, source):
        self.source = [*source]
        self.beams = [[[]] for _ in source]

    def follow(self, beam_index):
        flat = [beam for beams in self.beams for beam in beams]
        num_beams = len(self.beams[0])
        self.source = [self.source[row[0] // num_beams] for row in beam_index]
        self.beams = [[[*flat[index]] for index in row] for row in beam_index]

    def join(self, other):
        self.source += other.source
        self.beams += other.beams


def of_sources(draw, count, length):
    """Return `Slots` and `Copies` of sources with random entries."""
    entries = {
        "source_key_0": draw.normal(size=(count, 1, length, 2)).astype("float32"),
        "source_mask": np.ones((count, length), bool),
    }
    numbers = entries["source_key_0"].copy()
    return Slots(CACHES, SOURCES, entries, count), Copies(numbers)


def write(draw, slots, copies):
    """Let each beam read a token, as a graph does that writes into the caches."""
    caches = [value.numpy() for value in slots.values().values()]
    for source, beams in enumerate(copies.beams):
        for beam, tokens in enumerate(beams):
            row = slots.rows[source, beam]
            new = draw.normal(size=(2, HEADS, HEAD_DIM)).astype("float32")
            for cache, numbers in zip(caches, new, strict=True):
                cache[row, :, slots.lengths[row]] = numbers
            tokens.append(new)
    slots.lengths += 1


def assert_equal(slots, copies):
    caches = [value.numpy() for value in slots.values().values()]
    for source, beams in enumerate(copies.beams):
        for beam, tokens in enumerate(beams):
            row = slots.rows[source, beam]
            assert slots.lengths[row] == len(tokens)
            for number, cache in enumerate(caches):
                read = cache[row, :, : len(tokens)].transpose(1, 0, 2)
                expected = [new[number] for new in tokens]
                np.testing.assert_array_equal(read, np.reshape(expected, read.shape))
        place = slots.rows[source, 0] // slots.num_beams
        numbers, mask = slots.source["source_key_0"][place], slots.source["source_mask"][place]
        length = copies.source[source].shape[1]
        assert mask.sum() == length
        np.testing.assert_array_equal(numbers[:, :length], copies.source[source])
    assert len(slots.lengths) == slots.rows.size == sum(map(len, copies.beams))


def step(draw, slots, copies, beam_index):
    """Let beams follow others and read a token; both states hold the same then."""
    slots.follow(np.array(beam_index))
    copies.follow(beam_index)
    write(draw, slots, copies)
    assert_equal(slots, copies)


def some_sources(draw, count):
    """Return in order the numbers of some of the sources, at least one."""
    kept = np.flatnonzero(draw.random(count) < 0.8)
    return kept if len(kept) else np.array([draw.integers(count)])


@pytest.mark.parametrize("num_beams", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_beams_and_sources_are_those_of_whole_copies(seed, num_beams):
    draw = np.random.default_rng(seed)
    slots, copies = of_sources(draw, 4, 3)
    beams = 1
    for count in range(90):
        if count % 10 == 9:  # others come, which have read tokens of their own
            more, their_copies = of_sources(
                draw, int(draw.integers(1, 4)), int(draw.integers(1, 6))
            )
            for _ in range(draw.integers(3)):
                more.follow(np.arange(len(their_copies.beams))[:, np.newaxis])
                write(draw, more, their_copies)
            widened = np.repeat(np.arange(len(their_copies.beams)), num_beams).reshape(
                -1, num_beams
            )
            more.follow(widened)
            their_copies.follow(widened)
            slots.join(more)
            copies.join(their_copies)
        kept = some_sources(draw, len(copies.beams))
        beam_index = beams * kept[:, np.newaxis] + draw.integers(beams, size=(len(kept), num_beams))
        step(draw, slots, copies, beam_index)
        beams = num_beams


def test_sources_that_find_no_memory_change_nothing(monkeypatch):
    draw = np.random.default_rng(0)
    (slots, copies), (more, _) = of_sources(draw, 2, 3), of_sources(draw, 5, 4)
    for each in (slots, more):
        each.follow(np.arange(len(each.rows))[:, np.newaxis])
    write(draw, slots, copies)
    made, moved = [], slots_module._Buffers.moved

    def only_once(*arguments):
        made.append(arguments)
        if len(made) > 1:
            raise MemoryError
        return moved(*arguments)

    monkeypatch.setattr(slots_module._Buffers, "moved", only_once)
    with pytest.raises(MemoryError):
        slots.join(more)
    monkeypatch.undo()
    for beam_index in ([[0], [1]], [[1], [0]]):
        step(draw, slots, copies, beam_index)


def test_buffers_shrink_when_most_of_what_they_hold_has_left():
    draw = np.random.default_rng(0)
    slots, copies = of_sources(draw, 17, 3)
    more, theirs = of_sources(draw, 1, 61)
    slots.join(more)
    copies.join(theirs)
    for _ in range(40):
        slots.follow(np.arange(18)[:, np.newaxis])
        write(draw, slots, copies)
    most = slots.num_bytes
    for beam_index in ([[3], [16]], [[1], [0]]):
        step(draw, slots, copies, beam_index)
    assert slots.num_bytes < most / 6
    held = slots.num_bytes
    slots.follow(np.array([[1]]))
    copies.follow([[1]])
    assert slots.num_bytes == held
    slots.trim()
    assert slots.num_bytes < held
    write(draw, slots, copies)
    assert_equal(slots, copies)

"""Examples and arrays that are kept packed are what a list, or one array, would be."""

import errno
import io
import os
import pickle
import random
import tempfile
import threading

import numpy as np
import pytest

from seqkeras.data import stored
from seqkeras.data.batches import FrameSequences, Sequences
from seqkeras.data.stored import GrowingArray, Stored, joined, mapped, taken
from seqkeras.data.texts import DataError
from tests.test_security import Touches

SIZES = [0, 1, stored.BLOCK - 1, stored.BLOCK, stored.BLOCK + 1, 5 * stored.BLOCK + 3]


@pytest.fixture(params=[0, 70, stored.MOST_IN_MEMORY], ids=["file", "parts", "memory"])
def most_in_memory(request, monkeypatch):
    monkeypatch.setattr(stored, "MOST_IN_MEMORY", request.param)


@pytest.mark.parametrize("size", SIZES)
def test_stored_examples_are_those_of_a_list(size, most_in_memory):
    draw = random.Random(size)
    rows = [(number, "é\ud800" * draw.randint(0, 3), (1.5, None)) for number in range(size)]
    kept, generator = Stored(iter(rows)), np.random.default_rng(size)
    assert len(kept) == size and [*kept] == rows and kept == rows and kept == Stored(rows)
    assert bool(kept) == bool(rows) and kept != [*rows, rows] and kept != size
    assert [kept[place] for place in range(-size, size)] == rows + rows
    with pytest.raises(IndexError):
        kept[size]
    for part in (slice(None, None, 3), slice(2, -2), slice(None, None, -1)):
        assert [*kept[part]] == rows[part]
    chosen = generator.integers(0, size, 50) if size else np.array([], int)
    expected = [rows[place] for place in chosen]
    assert [*kept[chosen]] == expected == [*taken(kept, chosen)] == taken(rows, chosen)
    assert [*kept[np.arange(size) % 2 == 1]] == rows[1::2]
    doubled = kept.mapped(lambda row: row[0]).mapped(lambda number: 2 * number)
    assert [*doubled[::7]] == [2 * number for number in range(0, size, 7)]
    assert [*kept] == rows


def test_nothing_but_examples_is_read(tmp_path):
    kept = Stored([Touches(tmp_path / "touched")])
    with pytest.raises(
        pickle.UnpicklingError, match="must hold plain examples; found pathlib.Path"
    ):
        kept[0]
    assert not (tmp_path / "touched").exists()


def test_several_threads_read_what_is_stored(most_in_memory):
    rows = [str(number) for number in range(3000)]
    kept, wrong = Stored(rows), []

    def read(seed):
        places = np.random.default_rng(seed).permutation(3000)
        if [kept[place] for place in places] != [rows[place] for place in places]:
            wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_growing_array_holds_all_parts_in_a_dtype_for_all(most_in_memory):
    generator, parts, grown = np.random.default_rng(0), [], GrowingArray()
    for size, dtype in ((4, "int32"), (0, "int32"), (7, "int32"), (5, "int64"), (2, "int32")):
        high = 2**40 if dtype == "int64" else 100
        parts.append(generator.integers(0, high, (size, 3)).astype(dtype))
        grown.append(parts[-1])
        assert len(grown) == sum(map(len, parts))
    whole = grown.whole()
    assert whole.dtype == "int64"
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_sequences_that_are_joined_are_padded_alike_in_memory_and_in_a_file(most_in_memory):
    rows = [[[5, 6, 7], [8]], [[]], [[2**31, -1], [1, 2, 3, 4]]]
    joined = Sequences.joined(Sequences(part) for part in rows)
    assert joined[np.array([0, 3, 4, 2])].tolist() == [
        [5, 6, 7, 0],
        [2**31, -1, 0, 0],
        [1, 2, 3, 4],
        [0, 0, 0, 0],
    ]
    frames = [FrameSequences([np.full((size, 2), size)]) for size in (1, 3)]
    assert FrameSequences.joined(frames)[np.array([0, 1])].sum(axis=(1, 2)).tolist() == [2, 18]


@pytest.mark.parametrize("keep", [Stored, lambda rows: GrowingArray().append(np.array(rows))])
def test_a_full_folder_of_temporary_files_is_named(keep, monkeypatch, tmp_path):
    class Full(io.BytesIO):
        def write(self, content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        writelines = write

    monkeypatch.setattr(stored, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda size: Full())
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(
        DataError, match=f"^{tmp_path}: examples .* \\(No space left on device\\); ma"
    ):
        keep([1, 2])


@pytest.mark.parametrize("kinds", [(list,), (Stored,), (Stored, Stored), (list, Stored)])
def test_parts_are_joined_and_mapped_as_lists_are(kinds):
    parts = [kind((index, number) for number in range(300)) for index, kind in enumerate(kinds)]
    expected = [pair for part in parts for pair in part]
    whole = joined(parts)
    sums = mapped(whole, sum)
    assert whole == expected and sums == [*map(sum, expected)]
    assert {type(whole), type(sums)} == {list if list in kinds else Stored}

"""Windows of recordings whose rows go on from batch to batch."""

import itertools

import numpy as np
import pytest

from seqkeras.data.recording_windows import ConsecutiveWindows, recording_windows

SIZES = [7, 23, 5, 11]
FRAMES = np.arange(sum(SIZES))


def batches(step=0, sizes=SIZES, rows=3):
    frames = FRAMES[:, None].astype("float32")
    found = recording_windows({"frames": frames}, FRAMES, sizes, 5, rows, seed=0, ignored=-1)
    return found, found.from_step(step)


def rows_as_read(count, **options):
    """What each row reads in so many batches: lists of frames, one for each recording."""
    _, following = batches(**options)
    read = []
    for inputs, targets in itertools.islice(following, count):
        read = read or [[] for _ in targets]
        np.testing.assert_array_equal(inputs["frames"][..., 0], np.where(targets < 0, 0, targets))
        for row, begins, frames in zip(read, inputs["begins"], targets, strict=True):
            if begins:
                row.append([])
            row[-1] += frames[frames >= 0].tolist()
    return read


def test_each_row_reads_recordings_from_begin_to_end():
    starts = np.cumsum(SIZES) - SIZES
    recordings = [[*range(start, start + size)] for start, size in zip(starts, SIZES)]
    rows = rows_as_read(40)
    for row in rows:
        *whole, last = row
        assert all(found in recordings for found in whole)
        assert any(last == found[: len(last)] for found in recordings)
    counts = [sum(row.count(recording) for row in rows) for recording in recordings]
    assert max(counts) - min(counts) <= 2  # each pass has all recordings


def test_fewer_recordings_than_rows_are_cut_into_parts():
    found, _ = batches(rows=7)
    assert found.order.firsts.shape == (9,)  # of 46 // 7 = 6 frames at most: 2 + 4 + 1 + 2
    assert {len(part) for row in rows_as_read(30, rows=7) for part in row[:-1]} == {1, 5, 6}


def test_batches_are_a_function_of_the_step_and_count_their_frames():
    found, following = batches()
    again = batches(step=5)[1]
    for expected, actual in zip(itertools.islice(following, 5, 9), again):
        np.testing.assert_array_equal(actual[1], expected[1])
        np.testing.assert_array_equal(actual[0]["begins"], expected[0]["begins"])
    tokens = itertools.islice(found.tokens_from(0), 9)
    assert [*tokens] == [
        int((targets >= 0).sum()) for _, targets in itertools.islice(batches()[1], 9)
    ]
    assert len(found) == 11 // 3  # windows: 2 + 5 + 1 + 3


def test_a_batch_needs_as_many_recordings():
    message = "^ConsecutiveWindows: a batch of 3 needs as many recordings; received 2.$"
    with pytest.raises(ValueError, match=message):
        ConsecutiveWindows(np.array([4, 2]), 3, 0)

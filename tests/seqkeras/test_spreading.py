import numpy as np
import pytest

from seqkeras.spreading import evenly_spread, spread


def test_shown_rows_are_spread():
    assert evenly_spread(3, 9) == [0, 4, 8]
    assert evenly_spread(5, 2) == [0, 1] and evenly_spread(0, 2) == []


@pytest.mark.parametrize(
    "targets",
    [
        [],
        [None] * 23,
        ["a"] * 19 + ["b"] * 3,
        [*range(31)],
        [["O"], ["O", "B-X"], []] * 7,
        [np.ones(2), {"a": 1}, 5],
    ],
    ids=["none", "no targets", "labels", "numbers", "tags", "of other kinds"],
)
def test_every_example_has_one_place_and_the_first_stays_the_first(targets):
    places = spread(targets)
    assert sorted(places) == [*range(len(targets))]
    assert places[:1] == [0][: len(targets)]


def test_the_labels_of_a_sorted_file_take_turns():
    targets = ["a"] * 100 + ["b"] * 10 + ["c"] * 3
    labels = [targets[place] for place in spread(targets)]
    for start in range(0, 9, 3):
        assert {*labels[start : start + 3]} == {"a", "b", "c"}
    assert {*labels[9:23:2]} == {"a"} and {*labels[10:23:2]} == {"b"}


def test_tags_of_sentences_count_by_their_set():
    targets = [["O"], ["O", "O"]] * 20 + [["B-X", "O"]]
    assert 40 in spread(targets)[:2]


def test_each_beginning_comes_from_all_of_the_file():
    for targets in ([*range(101)], [None] * 101):
        places = spread(targets)
        for count in (4, 8, 16, 32):
            gaps = np.diff(sorted(places[:count]))
            assert gaps.max() <= 2 * np.ceil(100 / (count / 2 + 1))

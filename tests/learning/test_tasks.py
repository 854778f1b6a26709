"""The tasks ask what they say they ask, and no guess solves them."""

import numpy as np
import pytest

from tests.learning import tasks


@pytest.fixture
def random():
    return np.random.default_rng(1)


def test_recall_asks_for_the_marked_symbol(random):
    inputs, labels = tasks.recall(200, 7, random)
    assert inputs.shape == (200, 8, 3)
    for row, label in zip(inputs, labels, strict=True):
        assert row[:, 2].tolist() == [1] + [0] * 7
        assert row[0, label] == 1 and np.all(row[:, :2].sum(axis=1) == 1)
    assert 0.4 < labels.mean() < 0.6 and 0.4 < inputs[:, 1:, 0].mean() < 0.6


def test_adding_asks_for_the_sum_of_one_number_of_each_half(random):
    inputs, sums = tasks.adding(200, 11, random)
    for row, total in zip(inputs, sums, strict=True):
        first, second = np.flatnonzero(row[:, 1])
        assert first < 5 <= second
        np.testing.assert_allclose(row[first, 0] + row[second, 0], total, rtol=1e-6)
    assert 0.1 < np.mean((sums - 1) ** 2) < 0.25


def test_brackets_ask_whether_they_are_balanced(random):
    token_ids, labels = tasks.brackets(200, 16, random)
    for row, label in zip(token_ids, labels, strict=True):
        text = "".join("()"[each] for each in row)
        assert text.count("(") == text.count(")") == 8
        while "()" in text:
            text = text.replace("()", "")
        assert (text == "") == label
    assert labels.mean() == 0.5


def test_near_asks_for_token_zero_within_the_distance(random):
    token_ids, answers = tasks.near(50, 17, 3, random)
    for row, answer in zip(token_ids, answers, strict=True):
        for t in range(17):
            assert answer[t] == (0 in row[max(0, t - 3) : t + 4])


def test_enclosed_sentences_say_at_either_end_what_the_other_end_is(random):
    word_ids, lengths, cost = tasks.enclosed(300, random)
    nats, words = 0.0, 0
    for row, length in zip(word_ids, lengths, strict=True):
        kind = row[0] - 1
        assert 0 <= kind < 6 and row[length - 1] == 7 + kind and length == 4 + kind % 3
        assert set(row[1 : length - 1]) <= {13, 14} and not row[length:].any()
        nats, words = nats + (length - 2) * np.log(2), words + length - 1
    np.testing.assert_allclose(cost, nats / words)
    noise = word_ids[word_ids > 12]
    assert 0.4 < np.mean(noise == 13) < 0.6

"""Answers that are the same but for rounding."""

import pytest


def assert_same(found, expected, rel=1e-5, abs=1e-6):
    """Assert that contents of JSON are the same; numbers may differ by what a batch of another
    size rounds."""
    if isinstance(expected, float):  # which some languages write as a whole number
        assert found == pytest.approx(expected, rel=rel, abs=abs)
        return
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert list(found) == list(expected)
        found, expected = [*found.values()], [*expected.values()]
    if isinstance(found, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other, rel, abs)
    else:
        assert found == expected

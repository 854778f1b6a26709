"""What is wrong with a bundle is data, and one line of text."""

import pickle

import pytest

from seqkeras.serving.manifest import BundleError, Refusal


@pytest.mark.parametrize(
    ("reasons", "places", "text"),
    [
        (("a", "b"), {"where": "dir", "subject": "file", "advice": "Do."}, "dir: file: a; b. Do."),
        (("a",), {"where": "dir"}, "dir: a."),
        (("a",), {"advice": "Do."}, "a. Do."),
        (("It says so.",), {"where": "dir"}, "dir: It says so."),
    ],
)
def test_a_refusal_is_one_line(reasons, places, text):
    refusal = Refusal(*reasons, **places)
    assert str(refusal) == text
    assert refusal.reasons == reasons


def test_a_refusal_is_the_same_in_another_process():
    refusal = pickle.loads(pickle.dumps(BundleError("a", "b", where="dir", subject="file")))
    assert str(refusal) == "dir: file: a; b. Export the bundle again."
    assert (refusal.reasons, refusal.advice) == (("a", "b"), "Export the bundle again.")

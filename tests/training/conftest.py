"""Curves of trainings are drawn by `test_curves.py` alone: to draw takes longer than to train.

A table without rows is enough for what is refused before it is read.
"""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_curves():
    """Trainings of a module leave an empty curves.png."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqkeras.training.history.draw_curves", lambda rows, path: path.touch())
        yield


@pytest.fixture
def table(tmp_path):
    (tmp_path / "a.tsv").write_text("text\tlabel\n")
    return tmp_path / "a.tsv"

"""What the tests of pages share."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which the test works in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""What the tests of files share, and one noisy sample for all tests of dates."""

import gzip

import pytest

from seqkeras.data import dates


@pytest.fixture(scope="package")
def noisy():
    return dates.sample("train", 4_001, seed=5, noisy=True)


@pytest.fixture
def write(tmp_path):
    """Write a file of a test, packed if its name ends in .gz; returns its path."""

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write

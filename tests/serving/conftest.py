import pytest

from seqkeras import serving
from tests.serving.toy_bundle import write_bundle


@pytest.fixture
def bundle(tmp_path):
    """A whole bundle of the test's own, to spoil."""
    return write_bundle(tmp_path / "toy")


@pytest.fixture(scope="session")
def shared_bundle(tmp_path_factory):
    """A whole bundle, to read only."""
    return write_bundle(tmp_path_factory.mktemp("bundles") / "toy")


@pytest.fixture(scope="session")
def pipeline(shared_bundle):
    return serving.load(shared_bundle, threads=1)

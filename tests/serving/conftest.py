import io
import sys

import pytest

from seqkeras import serving
from seqkeras.serving.__main__ import main
from tests.serving.toy_bundle import write_bundle


@pytest.fixture
def bundle(tmp_path):
    """A whole bundle of the test's own, to spoil."""
    return write_bundle(tmp_path / "toy")


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """A whole bundle of every kind, by name, to read only."""
    from tests.serving import zoo  # the environments of Beam, Ray and Spark lack its tokenizers

    parent = tmp_path_factory.mktemp("zoo")
    return {name: zoo.write(name, parent / name) for name in zoo.INPUTS}


@pytest.fixture(scope="session")
def shared_bundle(tmp_path_factory):
    """A whole bundle, to read only."""
    return write_bundle(tmp_path_factory.mktemp("bundles") / "toy")


@pytest.fixture(scope="session")
def pipeline(shared_bundle):
    return serving.load(shared_bundle, threads=1)


@pytest.fixture
def calls(monkeypatch):
    """Takes a function's owner and name; returns a list that each call adds its arguments to."""

    def watch(owner, name):
        found, function = [], getattr(owner, name)

        def watched(*arguments, **options):
            found.append(arguments)
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, watched)
        return found

    return watch


class StandardInput(io.TextIOWrapper):
    """Bytes to read, as they come from a file or from a terminal."""

    def __init__(self, content, terminal=False):
        super().__init__(io.BytesIO(content))
        self.isatty = lambda: terminal


@pytest.fixture
def command(capsys, monkeypatch):
    """Run a command on a bundle in this process: status, standard output, standard error."""

    def command(name, folder, *arguments, stdin=b"", terminal=False):
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", StandardInput(content, terminal))
        return main([name, str(folder), *arguments]), *capsys.readouterr()

    return command

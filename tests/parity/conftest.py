"""Live comparisons with other libraries: `make parity` installs these, then runs the folder.

What is missing is skipped by what each test needs: benchmarks/requirements.txt, for one, installs
torch and transformers, and no sentence-transformers.
"""

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


def needs(package):
    """A mark that skips a test where a package is not installed."""
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is in requirements-parity.txt"
    )

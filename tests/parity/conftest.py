"""Live comparisons with other libraries: `make parity` installs these, then runs the folder."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]

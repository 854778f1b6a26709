"""The environment that `make` makes for its commands."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT

FAILS_ONCE = """#!/bin/sh
case "$*" in "-m venv"*)
    if ! [ -e mended ]; then  # as where ensurepip fails: the interpreter is there, pip is not
        mkdir -p .venv/bin
        ln -sf "{python}" .venv/bin/python
        echo "ensurepip: no space left on device" >&2
        exit 1
    fi
esac
exec "{python}" "$@"
"""


def make(folder, *arguments):
    """Runs `make` as from a shell, though these tests may be run by another `make`."""
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    return subprocess.run(
        ["make", *arguments, "PYTHON=./python", "UV="],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in outer},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_an_environment_whose_making_failed_is_made_again(tmp_path):
    if not shutil.which("make"):
        pytest.skip("there is no make")
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    python = tmp_path / "python"
    python.write_text(FAILS_ONCE.format(python=sys.executable))
    python.chmod(0o755)
    failed = make(tmp_path, ".venv/made")
    assert failed.returncode and "no space left" in failed.stderr
    (tmp_path / "mended").touch()
    made = make(tmp_path, ".venv/made")
    assert made.returncode == 0, made.stderr
    pip = [tmp_path / ".venv/bin/python", "-m", "pip", "--version"]
    assert str(tmp_path) in subprocess.run(pip, check=True, capture_output=True, text=True).stdout
    assert make(tmp_path, ".venv/made").stdout == "make: '.venv/made' is up to date.\n"

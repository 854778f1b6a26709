"""The package `serving/javascript`, in Node."""

import os
import re
import shutil
import subprocess

import pytest

from tests.conftest import CHECKOUT

PACKAGE = CHECKOUT / "serving/javascript"
LEAST_NODE = 20


def run(*command, given=None, **environment):
    """Run a command in the package with this text as its input; return its output, or fail with
    it."""
    finished = subprocess.run(
        command,
        cwd=PACKAGE,
        env=os.environ | environment,
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=900,
    )
    if finished.returncode:
        pytest.fail(f"{' '.join(command)} failed\n{finished.stdout}\n{finished.stderr}")
    return finished.stdout


def require_packages():
    if not (PACKAGE / "node_modules").is_dir():
        pytest.skip("needs the packages of serving/javascript: npm ci there")


def require_node():
    """Skip the test without Node and the packages of package-lock.json."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("needs Node and npm")
    version = run("node", "--version").strip()
    if int(re.match(r"v(\d+)", version)[1]) < LEAST_NODE:
        pytest.skip(f"needs Node {LEAST_NODE}; this is {version}")
    require_packages()

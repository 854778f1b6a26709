"""`serving/cpp`, built with the headers of the system, or of the folder ONNXRUNTIME_INCLUDE_DIR."""

import atexit
import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import onnxruntime
import pytest

from tests.conftest import CHECKOUT


def answer(bundle, text, *arguments, library=None, command="answer"):
    """Run a command with arguments and these bytes as its input; returns the finished process."""
    call = command_of(bundle, *arguments, library=library, command=command)
    return subprocess.run(call, input=text, capture_output=True, timeout=60)


def command_of(bundle, *arguments, library=None, command="answer"):
    """The call of a command as a list."""
    library = library or library_of_wheel()
    return [program(command), bundle, "--library", library, "--threads", "1", *arguments]


def program(name):
    """The path of a program: a command, or `calls`."""
    return _built() / name


def library_of_wheel():
    """The path of onnxruntime's library."""
    found = [*Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.1*")]
    if not found:
        pytest.skip("needs libonnxruntime.so of onnxruntime's wheel for Linux")
    return found[0]


@functools.cache
def _built():
    for tool in ("cmake", "c++"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")
    build = Path(tempfile.mkdtemp(prefix="cpp-"))
    atexit.register(shutil.rmtree, build)
    headers = os.environ.get("ONNXRUNTIME_INCLUDE_DIR")
    options = ["-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"]
    options += [f"-DPROGRAMS={CHECKOUT / 'tests/serving/cpp/calls.cpp'}"]
    options += [f"-DONNXRUNTIME_INCLUDE_DIR={headers}"] if headers else []
    configured = subprocess.run(
        ["cmake", "-S", CHECKOUT / "serving/cpp", "-B", build, *options],
        capture_output=True,
        text=True,
    )
    if configured.returncode:
        missing = re.search(r"Could (not|NOT) find .*|.*headers are missing.*", configured.stderr)
        assert missing, configured.stderr
        pytest.skip(f"needs headers: cmake says: {missing[0]}")
    built = subprocess.run(["cmake", "--build", build], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return build

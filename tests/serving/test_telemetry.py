"""onnxruntime's telemetry: off in every process of ours, unless the user turns it on.

It writes an event database into the user's cache folder as onnxruntime is imported, and looks its
host up some seconds later. Both are watched from outside: by an empty home, and by the kernel,
which ends a process that asks it for a socket (seccomp).
"""

import os
import platform
import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT, others_long

LOADS = """
import sys
import {module}
import onnxruntime
from seqkeras import serving
serving.load(sys.argv[1])("up|bad")
"""
SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine())  # the number of the system call
WITHOUT_SOCKETS = """
import ctypes, struct
LOAD, JUMP_IF_EQUAL, RETURN, END_PROCESS, ALLOW = 0x20, 0x15, 0x06, 0x80000000, 0x7FFF0000
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
program = ctypes.create_string_buffer(
    b"".join(
        struct.pack("HBBI", *line)
        for line in [
            (LOAD, 0, 0, 0),
            (JUMP_IF_EQUAL, 0, 1, {socket}),
            (RETURN, 0, 0, END_PROCESS),
            (RETURN, 0, 0, ALLOW),
        ]
    )
)
class Filter(ctypes.Structure):
    _fields_ = [("lines", ctypes.c_ushort), ("program", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
filter = ctypes.byref(Filter(4, ctypes.addressof(program)))
assert libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
assert libc.prctl(SECCOMP, FILTER, filter, 0, 0) == 0
"""
ANSWERS = """
import sys, threading, time, serving
answer, end = serving.load(sys.argv[1]), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
while not end.wait(0.1):
    answer("up|bad")
print("answered to the end")
"""


def environment(home, **variables):
    """As a user has it: telemetry is off by itself where CI is set, as in many a test run."""
    home.mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(home), **variables}


def files(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


def begun(home, *arguments, **variables):
    """A process with this home and nothing else of the environment."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command, given = [sys.executable, *map(str, arguments)], environment(home, **variables)
    return subprocess.Popen(command, cwd=CHECKOUT, env=given, text=True, **pipes)


PREDICT = ["-m", "serving", "predict"]
MODULES = ["seqkeras.serving", "seqkeras.export", "seqkeras.training", "benchmarks"]
PROGRAMS = [PREDICT, *(["-c", LOADS.format(module=module)] for module in MODULES)]


@pytest.mark.parametrize("program", others_long(PROGRAMS), ids=["predict", *MODULES])
def test_no_file_is_made(program, shared_bundle, tmp_path):
    given = ["up|bad"] if program is PREDICT else []
    process = begun(tmp_path / "home", *program, shared_bundle, *given)
    _, error = process.communicate()
    assert (process.returncode, error, files(tmp_path / "home")) == (0, "", [])


def test_whoever_sets_the_variable_is_obeyed(shared_bundle, tmp_path):
    code = LOADS.format(module="seqkeras.serving")
    process = begun(tmp_path / "home", "-c", code, shared_bundle, ORT_DISABLE_TELEMETRY="0")
    process.communicate()
    assert "onnxruntime.db" in files(tmp_path / "home")


@pytest.mark.skipif(SOCKET is None or sys.platform != "linux", reason="the filter is Linux's")
@pytest.mark.long
def test_no_name_is_looked_up(shared_bundle, tmp_path):
    code = WITHOUT_SOCKETS.format(socket=SOCKET) + ANSWERS
    ours = begun(tmp_path / "ours", "-c", code, shared_bundle)
    theirs = begun(tmp_path / "theirs", "-c", code, shared_bundle, ORT_DISABLE_TELEMETRY="0")
    try:
        theirs.wait(timeout=60)  # until it looks its host up: 9 s
        output, error = ours.communicate()
    finally:
        ours.kill()
        theirs.kill()
    assert (ours.returncode, output, error) == (0, "answered to the end\n", "")
    assert (theirs.returncode, theirs.communicate()[0]) == (-31, "")  # SIGSYS

"""What `keep_freed_memory` changes, counted in pages that the system had to clear."""

import os
import platform
import subprocess
import sys

import pytest

from seqkeras import memory

ARRAYS = """
import resource, sys, threading
import numpy as np
from seqkeras.memory import keep_freed_memory

def work():
    for _ in range(40):
        np.ones(6 * 2**20)  # 48 MB each, freed at once

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    keep_freed_memory()
for run in (work, work):  # the first takes what the second finds
    before, thread = faults(), threading.Thread(target=run)
    thread.start()
    thread.join()
print(faults() - before)
"""


def _faults(case, **variables):
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", ARRAYS, case]
    done = subprocess.run(command, env=own | variables, check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks glibc")
def test_freed_arrays_are_used_again_unless_the_user_has_set_malloc_up():
    kept, given_back = _faults("kept"), _faults("given back")
    assert kept < 100 < given_back
    assert _faults("kept", MALLOC_ARENA_MAX="8") > 100


def test_where_the_c_library_has_no_mallopt_nothing_changes(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    for library in (object(), None):
        monkeypatch.setattr(memory.ctypes, "CDLL", lambda name, library=library: library)
        memory.keep_freed_memory()

"""A process that is killed before the n-th thing that it does to files: one test, every moment."""

import itertools
import subprocess
import sys

from tests.conftest import CHECKOUT

KILLED = 9
# Python reports each of these before it is done (https://docs.python.org/3/library/audit_events.html).
PRELUDE = """
import os
import sys

moments = iter(range({count}))


def die(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
    if writes or event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        if {folder!r} in str(arguments[0]) and next(moments, None) is None:
            os._exit({killed})


{code}
"""


def killed_at_every_moment(code, folder, prepare):
    """Run Python code again and again, each time killed one moment later, until it ends.

    Args:
        code: a text; what lies behind its `sys.addaudithook(die)` is counted.
        folder: only what is done to files whose path holds its name counts.
        prepare: called before each time.

    Yields:
        The number of moments that had passed, after each kill.
    """
    for count in itertools.count():
        prepare()
        prelude = PRELUDE.format(count=count, folder=str(folder), killed=KILLED, code=code)
        done = subprocess.run(
            [sys.executable, "-c", prelude], cwd=CHECKOUT, capture_output=True, text=True
        )
        if done.returncode == 0:
            assert count > 3
            return
        assert done.returncode == KILLED, done.stderr
        yield count

"""Quiet libraries still say what changes a result, once and in a line."""

import io
import logging
import subprocess
import sys

import pytest

from seqkeras.quiet import OfResults
from tests.conftest import CHECKOUT


def test_a_warning_of_a_log_that_tells_of_a_result_comes_once_in_a_line():
    written = io.StringIO()
    logger = logging.Logger("library")
    logger.addHandler(logging.StreamHandler(written))
    logger.addFilter(OfResults())
    for _ in range(3):
        logger.warning("AutoGraph could not transform %s and will run it as-is.\nCause: none", "f")
        logger.warning("5 out of the last 5 calls triggered tf.function retracing.")
    logger.error("it failed\nhere")
    expected = "AutoGraph could not transform f and will run it as-is. Cause: none\n"
    assert written.getvalue() == expected + "it failed\nhere\n"


@pytest.mark.long
def test_a_warning_of_python_is_a_line():
    source = (
        "from seqkeras.quiet import import_keras; import_keras(); import warnings\n"
        "for _ in range(3): warnings.warn('two\\n  lines of it')"
    )
    finished = subprocess.run(
        [sys.executable, "-c", source], cwd=CHECKOUT, capture_output=True, encoding="utf-8"
    )
    assert (finished.returncode, finished.stderr) == (0, "warning: two lines of it\n")


def test_tensorflow_is_imported_without_packages_that_can_be_imported_later():
    source = (
        "import gc, sys; from seqkeras.quiet import DETOURS, import_tensorflow\n"
        "import_tensorflow(); print(*{*DETOURS} & {*sys.modules}, gc.isenabled())\n"
        "import pandas; print(len(pandas.Series([1, 2])))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", source], cwd=CHECKOUT, capture_output=True, encoding="utf-8"
    )
    assert (finished.stdout, finished.stderr) == ("True\n2\n", "")

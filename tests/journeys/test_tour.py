"""docs/tour.md: each task gives the answer that the page names, from the shell, in Python and over
HTTP."""

import re
import shlex

import numpy as np
import pytest

from tests.conftest import CHECKOUT, in_shell
from tests.serving.http.served import as_process

PAGE = (CHECKOUT / "docs" / "tour.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
*TASKS, (_, SERVE), (_, ASK) = [block for block in BLOCKS if block[0] != "python"]
ANSWERS = {
    "reviews": r"good\t[01]\.\d+",
    "names": "Omar/B-PER lives/O in/O Oslo/B-LOC",
    "en-de": "das alte boot",
    "tide": r"-?\d.*",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of somebody who took the tour, and what the tasks printed."""
    folder = tmp_path_factory.mktemp("tour")
    printed = [in_shell(f"set -e\n{commands}", folder) for _, commands in TASKS]
    return folder, [text.splitlines()[-1] for text in printed]


def test_each_task_gives_the_answer_that_the_page_names(folder):
    _, printed = folder
    assert len(printed) == len(ANSWERS)
    for answer, expected in zip(printed, ANSWERS.values(), strict=True):
        assert re.fullmatch(expected, answer)
    told = re.search(r"continue the sine: ([\d., ]+\d)", PAGE)[1]
    np.testing.assert_allclose(
        [float(number) for number in printed[-1].split()],
        [float(number) for number in told.split(", ")],
        atol=0.006,
    )


def test_python_answers_as_the_page_shows(folder):
    [script] = [block for language, block in BLOCKS if language == "python"]
    _, _, told = script.rpartition("# ")
    assert in_shell(f"python -c {shlex.quote(script)}", folder[0]) == told


def test_the_server_answers_as_the_page_shows(folder):
    bundles = [folder[0] / name for name in shlex.split(SERVE)[2:]]
    with as_process(*bundles) as (_, _, port):
        answer = in_shell(ASK.replace(":8000", f":{port}"), folder[0])
    assert '"text": "das alte boot"' in answer

"""Runs the tests of `serving/javascript` with bundles and answers that Python writes."""

import json
import re

import pytest

from tests.serving.javascript import cases, streams
from tests.serving.javascript.package import PACKAGE, require_node, run

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def node():
    require_node()


def npm_test(folder):
    """What `npm test` says, and its counts, with the answers of Python in a folder."""
    said = run("npm", "test", SEQKERAS_JAVASCRIPT_CASES=str(folder))
    counts = re.findall(r"^\W*(pass|fail|skipped) (\d+)$", said, re.MULTILINE)
    return said, {name: int(count) for name, count in counts}


def test_the_answers_in_javascript_are_those_of_python(tmp_path):
    cases.write(tmp_path)
    said, counted = npm_test(tmp_path)
    assert (counted["fail"], counted["skipped"]) == (0, 0), said
    assert counted["pass"] > 2 * len(json.loads((tmp_path / "cases.json").read_text()))
    streams.require_states_of_javascript(tmp_path)


def test_without_answers_of_python_the_tests_that_need_them_count_as_skipped():
    said, counted = npm_test("")
    assert counted["fail"] == 0 and counted["skipped"] > 5, said
    assert said.count("tests.serving.javascript.cases FOLDER") == counted["skipped"]


def test_the_types_are_right():
    run("npm", "run", "types")


def test_the_page_names_the_file_that_npm_packs():
    version = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))["version"]
    page = (PACKAGE / "README.md").read_text(encoding="utf-8")
    assert f"npm install ./seqkeras-serving-{version}.tgz\n" in page


def test_the_lock_file_names_no_host():
    assert "resolved" not in (PACKAGE / "package-lock.json").read_text(encoding="utf-8")

"""A bundle is loaded while an exporter replaces it."""

import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seqkeras import serving
from seqkeras.folders import written_aside
from seqkeras.serving.manifest import format as manifests
from tests.serving.pipelines.toys import Toy, load, write_bundle

ROOT = Path(__file__).parents[2]
LOADS = """
import sys
from seqkeras import serving
print("ready", flush=True)
for _ in range(30):
    print(serving.load(sys.argv[1], threads=1)("the cat").score, flush=True)
"""


def test_two_processes_load_while_a_third_replaces_the_bundle(tmp_path):
    folder = tmp_path / "toy"
    expected = set()
    for seed in (0, 1):
        graph = Toy(1, seed).graph("pooled")
        answer = load(tmp_path / f"toy{seed}", "Classify", graph)("the cat")
        expected.add(answer.score)
    write_bundle(folder, "Classify", Toy(1, 0).graph("pooled"))
    command = [sys.executable, "-c", LOADS, str(folder)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    # At any moment of a load; and now and then not for as long as one takes on a busy machine.
    for number, pause in enumerate(itertools.cycle([0, 0.01, 0.1, 0.8]), 1):
        if all(process.poll() is not None for process in processes):
            break
        with written_aside(folder, lambda: None) as aside:
            write_bundle(aside, "Classify", Toy(1, number % 2).graph("pooled"))
        time.sleep(pause)
    assert number > 4
    for process in processes:
        output, error = process.communicate()
        assert (process.returncode, error) == (0, "")
        assert {float(line) for line in output.split()} <= expected


def test_a_bundle_of_a_newer_schema_is_refused_with_the_way_to_upgrade(tmp_path, monkeypatch):
    folder = write_bundle(tmp_path / "toy", "Classify", Toy(1).graph("pooled"))
    monkeypatch.setattr(manifests, "SCHEMA_VERSION", 2)
    message = "has schema 3; this seqkeras-serving reads up to 2. Upgrade seqkeras-serving.$"
    with pytest.raises(serving.BundleError, match=message):
        serving.load(folder)


def test_a_pipeline_that_is_not_known_is_refused_with_those_that_are(tmp_path):
    folder = write_bundle(tmp_path / "toy", "Dream", Toy(1).graph("pooled"))
    known = "Translate, Generate, Classify, Tag, Answer, Choose, Embed, FillMask, Forecast"
    with pytest.raises(serving.BundleError, match=f"'Dream'; this seqkeras-serving has {known}. "):
        serving.load(folder)


@pytest.mark.parametrize("path", [None, 5, b"/tmp"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="^load: path must be a bundle's folder; received "):
        serving.load(path)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "a\ud800b"], ids=["long", "nul", "surrogate"])
def test_a_path_that_no_folder_can_have_is_refused_in_one_short_line(tmp_path, name):
    with pytest.raises(
        serving.BundleError, match="there is no such folder; expected a bu"
    ) as caught:
        serving.load(tmp_path / name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400

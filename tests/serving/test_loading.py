"""A bundle is loaded while an exporter replaces it."""

import itertools
import time

import pytest

from seqkeras.folders import written_aside
from tests.conftest import start_python
from tests.serving.pipelines.toys import Toy, load, write_bundle

LOADS = """
import sys
from seqkeras import serving
print("ready", flush=True)
for _ in range(30):
    print(serving.load(sys.argv[1], threads=1)("the cat").score, flush=True)
"""


@pytest.mark.long
def test_two_processes_load_while_a_third_replaces_the_bundle(tmp_path):
    folder = tmp_path / "toy"
    expected = set()
    for seed in (0, 1):
        graph = Toy(1, seed).graph("pooled")
        answer = load(tmp_path / f"toy{seed}", "Classify", graph)("the cat")
        expected.add(answer.score)
    write_bundle(folder, "Classify", Toy(1, 0).graph("pooled"))
    processes = [start_python("-c", LOADS, folder) for _ in range(2)]
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

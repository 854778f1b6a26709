"""The threads and processes of a server, by cores, weights and memory."""

import re
import signal

import pytest

from seqkeras.serving.http import cores, served_bundle
from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.http.metrics import Metrics
from seqkeras.serving.manifest import read_manifest
from tests.serving.http.served import as_process, ask, until

MIB = 2**20


@pytest.mark.parametrize(
    "weights, count, threads",
    [(0, 8, 1), (4 * MIB, 8, 1), (4 * MIB + 1, 8, 2), (22 * MIB, 8, 6), (400 * MIB, 8, 8)],
)
def test_threads_grow_with_the_weights_up_to_the_cores(weights, count, threads):
    assert cores.threads_for(weights, count) == threads


@pytest.mark.parametrize(
    "weights, count, memory, processes",
    [
        ([MIB], 8, None, 8),
        ([MIB, 12 * MIB], 8, None, 2),  # three threads for the larger one
        ([400 * MIB], 8, None, 1),
        ([MIB], 8, 3 * (cores.PROCESS + 2 * MIB), 3),
        ([MIB], 8, 0, 1),
        ([MIB], 1, None, 1),
    ],
)
def test_processes_share_the_cores_and_the_memory(weights, count, memory, processes):
    assert cores.processes_for(weights, count, memory) == processes


def test_weights_are_the_files_of_all_graphs(folders):
    folder = folders["letters"]
    manifest = read_manifest(folder)
    files = {file for graph in manifest.graphs.values() for file in graph.files}
    assert len(files) > 1
    assert cores.weights_of(manifest, None) == sum((folder / f).stat().st_size for f in files)
    assert cores.weights_of(manifest, "float32") == cores.weights_of(manifest, None)


def test_memory_that_is_not_told_is_unknown(monkeypatch, tmp_path):
    told = tmp_path / "meminfo"
    monkeypatch.setattr(cores, "MEMORY", str(told))
    monkeypatch.setattr(cores, "CONTAINER", str(tmp_path / "none"))
    assert cores.free_memory() is None
    told.write_text("MemTotal: 9 kB\nMemAvailable:   7 kB\n")
    assert cores.free_memory() == 7 * 1024
    told.write_text("MemTotal: 9 kB\n")
    assert cores.free_memory() is None


def test_a_container_limits_the_cores_and_the_memory(monkeypatch, tmp_path):
    def limit(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(f"{text}\n")

    told = tmp_path / "meminfo"
    told.write_text("MemAvailable: 7 kB\n")
    monkeypatch.setattr(cores, "MEMORY", str(told))
    monkeypatch.setattr(cores, "CONTAINER", str(tmp_path))
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda process: range(8), raising=False)
    assert cores.count_cores() == 8
    limit(cpu_max="max 100000", memory_max="max", memory_current=2000)
    assert (cores.count_cores(), cores.free_memory()) == (8, 7 * 1024)
    limit(cpu_max="250000 100000", memory_max=5000, memory_stat="anon 1500\ninactive_file 400")
    assert (cores.count_cores(), cores.free_memory()) == (3, 3400)
    limit(cpu_max="5000 100000", memory_max=1000)
    assert (cores.count_cores(), cores.free_memory()) == (1, 0)


@pytest.mark.parametrize("asked, expected", [(None, 1), (3, 3)])
def test_a_small_bundle_is_opened_with_one_thread_unless_told(
    asked, expected, folders, monkeypatch
):
    opened = []

    def open_bundle(folder, precision, threads, *others, before):
        opened.append(threads)
        return served_bundle_open(folder, precision, threads, *others, before=before)

    served_bundle_open = served_bundle.open_bundle
    monkeypatch.setattr(served_bundle, "open_bundle", open_bundle)
    opening = served_bundle.Opening(threads=asked)
    bundle = served_bundle.ServedBundle("letters", folders["letters"], opening, Bounds(), Metrics())
    bundle.close()
    assert opened == [expected]


def test_auto_starts_as_many_processes_as_there_are_cores(folders):
    with as_process(folders["letters"], "--processes", "auto", "--no-log") as (process, _, port):
        until(lambda: ask(port, "/v2/health/live")[0] == 200)
        for _ in range(7):
            assert ask(port, "/v1/bundles/toy", {"input": "up|bad"})[1]["text"] == "cbe"
        answered = re.search(r'outcome="answered"} (\S+)', ask(port, "/metrics")[1])
        assert float(answered[1]) == 7
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(
    "asked, memory, expected",
    [(None, 2**30, 2**28), (None, None, None), (30, 2**30, 15 * 2**20), (30, None, 15 * 2**20)],
)
def test_bundles_share_the_memory_of_caches(asked, memory, expected):
    assert cores.cache_bytes_for(asked, memory, 2) == expected

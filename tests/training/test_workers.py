"""Two processes on loopback train as one does, and go on when one of them was killed."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

from tests.conftest import CHECKOUT
from tests.training.test_cluster import free_ports

pytestmark = pytest.mark.long
LONGEST = 600  # seconds of a training here


class Worker(subprocess.Popen):
    """A process of the command; its lines are read when it has ended."""

    def __init__(self, *arguments, index=None, ports=()):
        # TensorFlow, imported here, has set the log level.
        own = ("TF_CONFIG", "TF_CPP_MIN_LOG_LEVEL")
        environment = {name: value for name, value in os.environ.items() if name not in own}
        if index is not None:
            cluster = {"worker": [f"localhost:{port}" for port in ports]}
            task = {"type": "worker", "index": index}
            environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
        super().__init__(
            [sys.executable, "-m", "training", "classification", *map(str, arguments)],
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self):
        """Its exit status, and what it wrote to standard output and standard error."""
        written = self.communicate(timeout=LONGEST)
        return self.returncode, *written


@contextlib.contextmanager
def two_workers(file, *folders, dropout=0.0):
    """The chief and the other worker, in a folder each or both in one."""
    ports = free_ports(2)
    workers = [
        Worker(*options(file, folder, dropout), index=index, ports=ports)
        for index, folder in enumerate(folders * 2 if len(folders) == 1 else folders)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            worker.stdout.close()
            worker.stderr.close()


def options(file, folder, dropout):
    sizes = "--batch-size 8 --units 7 --embedding-dim 5 --vocab-size 40 --max-length 12".split()
    steps = "--passes 40 --steps-per-save 20 --looks 2 --tensorboard false".split()
    return file, "--out", folder, "--dropout", dropout, *sizes, *steps


def weights(folder):
    return keras.models.load_model(folder / "model.keras").get_weights()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    words = "good fine great dull poor sad the a film story plot one is was very".split()
    lengths = np.random.default_rng(0).permutation(np.arange(48) % 12)
    path = tmp_path_factory.mktemp("files") / "reviews.csv"
    lines = [
        f"{' '.join(np.roll(words, row)[: 1 + length])},{'odd' if row % 2 else 'even'}"
        for row, length in enumerate(lengths)
    ]
    path.write_text("\n".join(["text,label", *lines]))
    return path


def test_two_workers_come_to_the_weights_of_one_and_the_chief_alone_prints(file, tmp_path):
    with two_workers(file, tmp_path / "two") as workers:
        (status, lines, errors), other = (worker.ended() for worker in workers)
    assert (status, other[0]) == (0, 0), errors + other[2]
    lines_of_other = [line for line in other[2].splitlines() if " waits up to " not in line]
    assert (other[1], lines_of_other) == ("", [])
    assert "next: seqkeras export" in lines
    alone = Worker(*options(file, tmp_path / "one", 0.0))
    status, _, errors = alone.ended()
    assert status == 0, errors
    for weight, expected in zip(weights(tmp_path / "two"), weights(tmp_path / "one"), strict=True):
        np.testing.assert_allclose(weight, expected, atol=1e-6)


def wait_for(path, worker):
    began = time.monotonic()
    while not path.exists():
        assert worker.poll() is None, worker.communicate()
        assert time.monotonic() - began < LONGEST
        time.sleep(0.05)


@pytest.mark.parametrize("killed", [0, 1], ids=["the chief", "the other worker"])
def test_a_worker_is_killed_the_other_stops_and_both_go_on_bit_for_bit(killed, file, tmp_path):
    with two_workers(file, tmp_path / "whole", dropout=0.2) as workers:
        assert [worker.ended()[0] for worker in workers] == [0, 0]
    folder = tmp_path / "killed"
    with two_workers(file, folder, dropout=0.2) as workers:
        wait_for(folder / "checkpoint.keras", workers[0])
        workers[killed].send_signal(signal.SIGKILL)
        began = time.monotonic()
        status, _, errors = workers[1 - killed].ended()
        assert time.monotonic() - began < 60
    assert status == 1
    [line] = [line for line in errors.splitlines() if " waits up to " not in line]
    assert line.startswith(f"python -m training: worker {1 - killed}: stopped, as a worker was lo")
    assert line.endswith(
        "Start all workers again: they go on from the last checkpoint, if there is one."
    )
    shutil.copytree(folder, tmp_path / "elsewhere")
    with two_workers(file, folder, dropout=0.2) as workers:
        (status, lines, errors), other = (worker.ended() for worker in workers)
    assert (status, other[0]) == (0, 0), errors + other[2]
    assert "going on from step" in lines
    for weight, expected in zip(weights(folder), weights(tmp_path / "whole"), strict=True):
        np.testing.assert_array_equal(weight, expected)
    if killed == 1:
        refuses_another_step(file, tmp_path / "elsewhere", tmp_path / "other")


def refuses_another_step(file, folder, other):
    """A worker whose folder has no checkpoint stands at another step than the chief."""
    shutil.copytree(folder, other)
    (other / "checkpoint.keras").unlink()
    with two_workers(file, folder, other, dropout=0.2) as workers:
        ended = [worker.ended() for worker in workers]
    assert [status for status, _, _ in ended] == [1, 1]
    for index, (_, _, errors) in enumerate(ended):
        assert f"python -m training: worker {index}: the workers' checkpoints are of" in errors
        assert "worker 1 0; all need the same folder as --out." in errors

"""Who trains together, as TF_CONFIG says; and who is awaited."""

import json
import socket
import threading

import pytest

from seqkeras.runs import RunError
from seqkeras.training.cluster import Cluster

TWO = {"worker": ["localhost:29701", "localhost:29702"]}


def config(cluster, kind="worker", index=0):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def free_ports(count):
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def clusters(count):
    """The same cluster as each of its processes has it."""
    addresses = [f"localhost:{port}" for port in free_ports(count)]
    names = [f"worker {index}" for index in range(count)]
    return [Cluster(names, addresses, index) for index in range(count)]


@pytest.mark.parametrize(
    "cluster, kind, index, name, is_chief",
    [
        (TWO, "worker", 0, "worker 0", True),
        (TWO, "worker", "1", "worker 1", False),
        (TWO | {"chief": ["a:1"]}, "chief", 0, "chief 0", True),
        (TWO | {"chief": ["a:1"]}, "worker", 0, "worker 0", False),
    ],
)
def test_the_chief_is_the_task_chief_or_worker_0(cluster, kind, index, name, is_chief, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config(cluster, kind, index))
    found = Cluster.of_environment()
    assert (found.name, found.is_chief) == (name, is_chief)
    assert set(TWO["worker"]) <= set(found.addresses)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("{", "Expecting property name"),
        ("[]", "list indices"),
        ('{"cluster": {}}', "'task' is missing"),
        (config({}), "the task worker 0 is not in the cluster"),
        (config(TWO, index=2), "the task worker 2 is not in the cluster"),
        (config(TWO, "evaluator"), "the task evaluator 0 is not in the cluster"),
        (config(TWO | {"ps": ["a:1"]}), "'ps' has no part in this training"),
        (config({"worker": ["localhost"]}), "'localhost' is no host:port"),
        (config({"worker": ["localhost:99999"]}), "'localhost:99999' is no host:port"),
        (config({"worker": "localhost:1"}), "worker must be a list of addresses"),
        (config({"worker": ["a:1", "a:1"]}), "two tasks have the same address"),
    ],
)
def test_a_cluster_that_can_not_be_is_refused_with_the_reason(text, reason, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(RunError, match="^TF_CONFIG: must be as {.*; received ") as caught:
        Cluster.of_environment()
    assert reason in str(caught.value)


def test_processes_that_come_one_after_another_meet(monkeypatch):
    monkeypatch.setattr("seqkeras.training.cluster.SAID_AFTER", 1)
    said, (last, *others) = [], clusters(3)
    threads = [threading.Timer(2 * at, other.meet, [str]) for at, other in enumerate(others)]
    for thread in threads:
        thread.start()
    last.meet(said.append)
    for thread in threads:
        thread.join()
    for index in range(3):
        with socket.create_server(("", int(last.addresses[index].split(":")[1]))):
            pass  # the address is free again
    assert [line.split(" waits")[0] for line in said] == ["worker 0"]
    assert said[0].endswith(f"for worker 2 at {last.addresses[2]}")


def test_a_worker_that_never_comes_is_named():
    here, there, missing = clusters(3)
    other = threading.Thread(target=lambda: pytest.raises(RunError, there.meet, str, 1))
    other.start()
    with pytest.raises(RunError) as caught:
        here.meet(str, patience=1)
    other.join()
    assert str(caught.value) == (
        f"worker 0: waited 1 s for worker 2 at {missing.addresses[2]}; start all workers with the "
        "same command and the same cluster in TF_CONFIG."
    )


def test_an_address_that_another_process_has_is_refused():
    here, _ = clusters(2)
    port = int(here.addresses[0].split(":")[1])
    with (
        socket.create_server(("", port)),
        pytest.raises(RunError, match=f"worker 0: can not listen at localhost:{port}: Address"),
    ):
        here.meet(str)

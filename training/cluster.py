"""The processes of one training on several machines, as `TF_CONFIG` names them."""

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Self

from seqkeras.runs import RunError

VARIABLE = "TF_CONFIG"
FORM = '{"cluster": {"worker": ["host:port", "host:port"]}, "task": {"type": "worker", "index": 0}}'
JOBS = ("chief", "worker")  # in the order of the processes
PATIENCE = 300  # seconds to wait for the others
SAID_AFTER = 10  # seconds, as processes begin at different moments
PAUSE = 0.2  # seconds that a look for them may take


class Cluster:
    """Which processes train together, and which of them this one is.

    The chief is the task "chief", or worker 0 where there is none: it alone writes and prints.

    Args:
        names: names of the processes, as "worker 1", the chief first.
        addresses: addresses of the processes, as "host:port".
        index: index of this process.
    """

    def __init__(self, names: Sequence[str], addresses: Sequence[str], index: int):
        self.names, self.addresses, self.index = names, addresses, index

    @classmethod
    def of_environment(cls) -> Self:
        """Return the cluster of the environment variable TF_CONFIG.

        Raises:
            RunError: if it is missing, or is not what TensorFlow takes.
        """
        text = os.environ.get(VARIABLE)
        if not text:
            raise RunError(
                f"--strategy multi-worker: the environment variable {VARIABLE} must name the "
                f"workers and this one, as {FORM}."
            )
        try:
            content = json.loads(text)
            cluster, task = content["cluster"], content["task"]
            tasks = {f"{job} {at}": where for job in JOBS for at, where in _tasks(cluster, job)}
            name = f"{task['type']} {int(task['index'])}"
            if other := sorted(set(cluster) - set(JOBS)):
                raise ValueError(f"{other[0]!r} has no part in this training, only {JOBS} have")
            if name not in tasks:
                raise ValueError(f"the task {name} is not in the cluster")
            if len(set(tasks.values())) < len(tasks):
                raise ValueError("two tasks have the same address")
            for address in tasks.values():
                _host_and_port(address)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise RunError(
                f"{VARIABLE}: must be as {FORM}; received {text!r:.300}: {reason}."
            ) from None
        return cls([*tasks], [*tasks.values()], [*tasks].index(name))

    @property
    def is_chief(self) -> bool:
        return self.index == 0

    @property
    def name(self) -> str:
        """The name of this process."""
        return self.names[self.index]

    def meet(self, say: Callable[[str], object], patience: float = PATIENCE) -> None:
        """Wait until all have visited each other; then the addresses are free again.

        TensorFlow waits too, but can neither say for whom nor be interrupted.

        Args:
            say: called with a line about who is awaited.

        Raises:
            RunError: if the address is in use, or somebody does not come within `patience` seconds.
        """
        address, others = self.addresses[self.index], {*range(len(self.addresses))} - {self.index}
        try:
            door = socket.create_server(("", _host_and_port(address)[1]))
        except OSError as error:
            raise RunError(f"{self.name}: can not listen at {address}: {error.strerror}.") from None
        began, said, visited, came = time.monotonic(), False, set(), set()
        with door:
            door.settimeout(PAUSE)
            while visited & came != others:
                visited = {at for at in others if at in visited & came or self._visit(at)}
                came |= self._visitors(door)
                awaited = others - (visited & came)
                who = ", ".join(f"{self.names[at]} at {self.addresses[at]}" for at in awaited)
                waited = time.monotonic() - began
                if awaited and waited > patience:
                    raise RunError(
                        f"{self.name}: waited {patience} s for {who}; start all workers with the "
                        f"same command and the same cluster in {VARIABLE}."
                    )
                if awaited and waited > SAID_AFTER and not said:
                    say(f"{self.name} waits up to {patience} s for {who}")
                    said = True

    def _visit(self, at):
        """Return whether another process was told that this one is there."""
        address = _host_and_port(self.addresses[at])
        try:
            with socket.create_connection(address, timeout=PAUSE) as visit:
                visit.sendall(f"{self.index}\n".encode())
        except OSError:
            return False
        return True

    def _visitors(self, door):
        """Return the processes, if any, that have visited this one meanwhile."""
        try:
            visitor, _ = door.accept()
            with visitor:
                visitor.settimeout(PAUSE)
                return {int(visitor.recv(20))} & {*range(len(self.addresses))}
        except (OSError, ValueError):  # nobody, or somebody who is no worker
            return set()


def _tasks(cluster, job):
    addresses = cluster.get(job, [])
    if not isinstance(addresses, list) or not all(
        isinstance(address, str) for address in addresses
    ):
        raise ValueError(f"{job} must be a list of addresses")
    return enumerate(addresses)


def _host_and_port(address):
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is no host:port")
    return host, int(port)

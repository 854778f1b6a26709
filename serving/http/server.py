"""Run the application by uvicorn, in one process or several."""

import atexit
import contextlib
import dataclasses
import functools
import json
import multiprocessing
import multiprocessing.connection
import os
import shlex
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from ..manifest import Manifest, read_verified
from ..printing import in_line, printable
from .application import Application, Service
from .connection import BOUNDS, Connection
from .hosts import hosts_of
from .log import log
from .metrics import FOLDER

BACKLOG = 2048
KEEP_ALIVE = 60  # seconds between two requests of a connection
MOST_PASTED = 1000  # characters of an input in a command
SPREADS = sys.platform == "linux"  # connections, over sockets that share a port


def run(
    service: Service,
    host: str,
    port: int,
    processes: int,
    token_from: str,
    allowed: Sequence[str] = (),
) -> None:
    """Serve until the process is told to end; what runs then is finished.

    Args:
        service: a `Service`.
        host, port: the address; port 0 for any that is free.
        processes: each opens the bundles, and all share the port.
        token_from: where the shell finds the token, for the line that tells how to ask.
        allowed: names by which clients may ask; see `hosts_of`.

    Raises:
        ValueError: if the address can not be bound, or a bundle can not be opened.
    """
    _raise_limit_of_files()
    with _bound(host, port, processes > 1) as listener, contextlib.ExitStack() as stack:
        hosts = hosts_of(listener.getsockname()[0], allowed)
        service = dataclasses.replace(service, hosts=hosts)
        if processes > 1:
            stack.enter_context(_shared_metrics())
            manifests = [read_verified(folder) for _, folder in service.bundles]
            config = _config(functools.partial(_application, service), service, processes)
        else:
            application = Application(service)
            manifests = [bundle.manifest for bundle in application.bundles]
            atexit.register(application.bundles.leave)
            config = _config(application, service, 1)
        listener.listen(BACKLOG)
        names = [name for name, _ in service.bundles]
        _tell(names, manifests, listener.getsockname(), token_from)
        if service.page is not None and service.page.missing:
            said = f"the page answers on the server only: {service.page.missing}"
            print(said, file=sys.stderr, flush=True)
        # uvicorn raises a signal again when it has ended: SIGTERM then ends with status 0.
        before = signal.signal(signal.SIGTERM, lambda number, frame: None)
        try:
            if processes > 1:
                _Processes(config, sockets=_Listeners([listener])).run()
            else:
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            signal.signal(signal.SIGTERM, before)


class _Listeners(list):
    """The sockets that a process of several accepts connections from: one that all share, which
    keeps those that come while none is ready, and on Linux one of its own.

    One process may take all connections of a burst from a shared socket: the first that wakes.
    Linux spreads connections over sockets.
    """

    def __reduce__(self):
        return _with_own, (self[0],)  # in the process that gets them


def _with_own(shared):
    if not SPREADS:
        return [shared]
    listener = _socket(shared.family, shared.type, shared.proto, True)
    listener.bind(shared.getsockname())
    return [shared, listener]  # the listener accepts nothing before its bundles are open


class _Processes(Multiprocess):
    """uvicorn's, which starts another process for one that died."""

    def keep_subprocess_alive(self) -> None:
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            mark_process_dead(pid)  # what waited in it waits no more


def _end_with_parent():
    """Let this process end, as by SIGTERM, when the one that started it does, even by SIGKILL."""
    parent = multiprocessing.parent_process()

    def watch():
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        threading.Thread(target=watch, daemon=True, name="seqkeras-parent").start()


def _config(application, service, processes):
    config = uvicorn.Config(
        application,
        factory=processes > 1,
        workers=processes,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(service.bounds.timeout) + 1,
    )
    setattr(config, BOUNDS, service.bounds)
    return config


def _application(service):
    """Return the application of a process of several; a refused bundle ends all of them."""
    _end_with_parent()
    try:
        application = Application(service)
    except ValueError as error:
        log(str(error))
        sys.exit(STARTUP_FAILURE)
    atexit.register(application.bundles.leave)
    return application


def _bound(host, port, several=False):
    """Return a socket that is bound to an address, which nobody else listens to.

    Args:
        host, port: the address.
        several: whether processes are to have sockets of their own for it.

    Raises:
        ValueError: if it can not be.
    """
    try:
        [(*kind, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with contextlib.ExitStack() as opened:
            listener = opened.enter_context(_socket(*kind, False))
            listener.bind(address)
            if several and SPREADS:  # only now: a port for several sockets is never in use
                address = listener.getsockname()
                listener.close()
                listener = opened.enter_context(_socket(*kind, True))
                listener.bind(address)
            opened.pop_all()
    except OSError as error:
        raise ValueError(
            f"serve: {host}:{port} can not be bound: {error.strerror}; choose another --host or "
            "--port."
        ) from error
    return listener


def _socket(family, kind, protocol, several):
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if several:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return made


def _raise_limit_of_files():
    """Let the process have as many connections as the system allows."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # macOS allows fewer than it says
        import resource  # Windows has no such limit

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def _shared_metrics():
    """Name a folder in which all processes count."""
    with tempfile.TemporaryDirectory(prefix="seqkeras-metrics-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


def _tell(names: list[str], manifests: list[Manifest], address: tuple, token_from: str) -> None:
    """Print where the server is, and a request that works: without a body it describes a bundle."""
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    url = f"http://{host}:{address[1]}"
    served = ", ".join(
        f"{name} ({manifest.pipeline})" for name, manifest in zip(names, manifests, strict=True)
    )
    header = f' -H "Authorization: Bearer {token_from}"' if token_from else ""
    examples = manifests[0].examples
    body = ""
    if examples:
        content = json.dumps({"input": examples[0]}, ensure_ascii=False)
        body = f" -d {shlex.quote(content)}" if len(content) <= MOST_PASTED else ""
    line = f"serving {served} at {url}; try: curl{header} {url}/v1/bundles/{names[0]}{body}"
    print(printable(in_line(line)), flush=True)

"""Servers of toy bundles: in this process, on a socket, or as a process of their own."""

import contextlib
import http.client
import json
import re
import signal
import socket
import threading
import time

import uvicorn

from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.served_bundle import Opening
from seqkeras.serving.http.server import _bound, _config
from tests.conftest import start_python


@contextlib.contextmanager
def on_socket(service, application=None, send_buffer=None):
    """Serve on a socket, in a thread; yields the port.

    `send_buffer`: the bytes of each connection that the system holds.
    """
    with _bound("127.0.0.1", 0) as listener:
        if send_buffer is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        server = uvicorn.Server(_config(application or Application(service), service, 1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def in_place_of(folder, answer, **options):
    """Serve a bundle of letters, as `on_socket` does; a function answers what an application does.

    `answer` takes what ASGI gives an application; `options` are those of `Service`.
    """
    service = Service([("letters", folder)], log=False, **options)
    application = Application(service)
    before = application._app

    async def answers(scope, receive, send):
        await (before if scope["type"] == "lifespan" else answer)(scope, receive, send)

    application._app = answers
    return on_socket(service, application)


def served(bundles, **options):
    """Serve bundles, name -> folder, with options of `Service`, as `on_socket` does."""
    options = {"opening": Opening(threads=1), "log": False} | options
    return on_socket(Service([*bundles.items()], **options))


@contextlib.contextmanager
def as_process(*arguments, env=(), page=()):
    """Run `seqkeras serve --port 0`; yields the process, its first line and its port.

    `page` are the options of the page; without any there is none.
    """
    arguments = (*arguments, *(page or ["--no-page"]))
    process = start_python("-m", "serving", "serve", "--port", "0", *arguments, env=env)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise AssertionError(line + process.stderr.read())
        yield process, line, int(found[1])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


def until(condition):
    """Wait until a condition holds, for a minute at most."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ask(port, path, content=None, headers=()):
    """The status and the JSON of an answer; `content` is posted, bytes as they are."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        body = content if isinstance(content, bytes | None) else json.dumps(content)
        method = "GET" if content is None else "POST"
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        text = response.read()
        if response.getheader("content-type", "").startswith("application/json"):
            return response.status, json.loads(text)
        return response.status, text.decode()

"""Connections that send nothing, too much, too slowly, or leave; tokens, origins, the log."""

import contextlib
import dataclasses
import http.client
import json
import re
import select
import socket
import threading
import time

import pytest

from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.http.connection import LOOK, MOST_HEAD
from tests.serving.http.served import ask, on_socket, served, until
from tests.serving.pipelines.toys import forecaster, write_bundle

POST = "POST /v1/bundles/letters HTTP/1.1\r\nhost: localhost\r\n"
GOOD = {"input": "up|bad"}


@pytest.fixture(scope="module")
def narrow(folders):
    """The port of a server with narrow bounds, and time."""
    with server(folders, max_body=100, idle=1.0) as port:
        yield port


def server(folders, **bounds):
    return served({"letters": folders["letters"]}, bounds=Bounds(**bounds))


@contextlib.contextmanager
def connected(port, receives=None):
    """A connection; `receives`: the bytes that it takes before they are read."""
    with socket.socket() as connection:
        connection.settimeout(20)
        if receives is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        connection.connect(("127.0.0.1", port))
        yield connection


def read_all(connection):
    """What the server sends until it closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts).decode()


def test_connections_that_send_nothing_are_closed_and_disturb_nobody(narrow):
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(narrow)) for _ in range(300)]
        half = stack.enter_context(connected(narrow))
        half.sendall(POST.encode())
        assert ask(narrow, "/v1/bundles/letters", GOOD)[1]["text"] == "cbe"
        assert {read_all(connection) for connection in [*silent, half]} == {""}


def test_a_head_that_comes_drop_by_drop_is_closed(narrow):
    with connected(narrow) as connection:
        connection.sendall(f"{POST}drops: ".encode())
        with pytest.raises(OSError):
            while True:
                connection.sendall(b"x")
                time.sleep(0.02)
        assert read_all(connection) == ""  # it was no error of the head


@pytest.mark.parametrize("before", [b"", b"GET /metrics HTTP/1.1\r\n\r\n"])
@pytest.mark.parametrize(
    "head",
    [
        b"x: " + 10**7 * b"y",
        10**6 * b"x: y\r\n",
        b"x: " + (MOST_HEAD - len(POST)) * b"y" + b"\r\n\r\n",
    ],
    ids=["a long header", "many headers", "a little too long"],
)
def test_a_head_of_too_many_bytes_is_refused(narrow, before, head):
    with connected(narrow) as connection:
        if before:
            connection.sendall(before)
            connection.recv(1)  # it is answered
        with contextlib.suppress(OSError):
            connection.sendall(POST.encode() + head)
        answer = read_all(connection)
    _, _, answer = answer.rpartition("HTTP/1.1 ")
    assert answer.startswith("431 Request Header Fields Too Large\r\n")
    assert answer.endswith(
        '\n{"error": "the head of a request may have 65536 bytes; it has more"}\n'
    )


def test_a_head_within_the_bound_is_read_whatever_stands_before_it(folders):
    """Requests with bodies and long heads, all sent at once, in pieces of any size."""
    content = json.dumps(GOOD).encode()
    lines = f"{POST}content-length: {len(content)}\r\nx: "
    fill = (MOST_HEAD - len(lines) - 4) * "y"
    one = f"{lines}{fill}\r\n\r\n".encode() + content
    assert len(one) == MOST_HEAD + len(content)
    with server(folders) as port, connected(port) as connection:
        sender = threading.Thread(target=connection.sendall, args=(7 * one,))
        sender.start()
        file = connection.makefile("rb")
        for _ in range(7):
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
            while not file.readline().endswith(b"}\n"):
                pass
        sender.join()


def test_a_body_that_does_not_come_is_told(folders):
    with server(folders, timeout=0.5) as port, connected(port) as connection:
        connection.sendall(f"{POST}content-length: 20\r\n\r\n{{".encode())
        answer = read_all(connection)
    assert answer.startswith("HTTP/1.1 408 ") and "the body did not come in time" in answer


@pytest.mark.parametrize("head", ["content-length: 101\r\n", "transfer-encoding: chunked\r\n"])
def test_a_body_over_the_bound_is_refused_before_it_is_read(narrow, head):
    with connected(narrow) as connection:
        connection.sendall(f"{POST}{head}\r\n".encode())
        if "chunked" in head:
            with contextlib.suppress(OSError):
                for _ in range(9):
                    connection.sendall(b"80\r\n" + 128 * b" " + b"\r\n")
        answer = read_all(connection)
    assert answer.startswith("HTTP/1.1 413 ")
    assert "a body may have 100 bytes; it has more" in answer


NO_HTTP = {
    b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n": "Invalid method encountered",
    b"GET / HTTP/3.0\r\n\r\n": "Invalid HTTP version",
    b"CONNECT localhost:80 HTTP/1.1\r\n\r\n": "Invalid URL",
    f"{POST}content-length: 3\r\ncontent-length: 4\r\n\r\n".encode(): "Duplicate Content-Length",
    f"{POST}transfer-encoding: chunked\r\n\r\nzz".encode(): "Invalid character in chunk size",
}


@pytest.mark.parametrize("before", [[], [GOOD], [GOOD | {"options": {}}, GOOD]], ids=len)
@pytest.mark.parametrize(("sent", "reason"), NO_HTTP.items(), ids=NO_HTTP.values())
def test_what_is_no_http_is_refused_behind_the_answers_before_it(sent, reason, before, folders):
    with server(folders) as port:
        with connected(port) as connection:
            connection.sendall(b"".join([*map(request_of, before), sent]))
            *answers, refusal = read_all(connection).split("HTTP/1.1 ")[1:]
            with contextlib.suppress(OSError):  # the server may have ended the connection
                connection.sendall(sent)
        metrics = ask(port, "/metrics")[1]
    assert len(answers) == len(before) and all(text.startswith("200 ") for text in answers)
    assert refusal.startswith("400 Bad Request\r\n")
    assert refusal.endswith(f'{{"error": "the request must be HTTP/1.1: {reason}"}}\n')
    assert len(re.findall(r'requests_total{api="\w+",status="400"} 1.0', metrics)) == 1
    assert 'status="499"' not in metrics


def test_a_client_that_sends_a_large_body_reads_why_it_is_refused(folders):
    body = 10_000_000 * b"x"  # more than the system keeps
    with server(folders) as port:
        for _ in range(3):
            status, content = ask(port, "/v1/bundles/letters", body)
            assert status == 413 and content["error"].startswith("a body may have 1,048,576 bytes")
    with server(folders, max_body=100, idle=0.3) as port, connected(port) as connection:
        connection.sendall(f"{POST}content-length: 1000000\r\n\r\n".encode())
        assert read_all(connection).startswith("HTTP/1.1 413 ")
        with pytest.raises(OSError):  # who goes on for longer than `idle` is let go
            while True:
                connection.sendall(b"x")
                time.sleep(0.02)


@pytest.mark.parametrize(("version", "first"), [("1.0", "200 OK"), ("1.1", "100 Continue")])
def test_only_a_client_of_http_1_1_is_told_to_go_on(version, first, port):
    body = json.dumps(GOOD).encode()
    head = f"{POST}expect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n"
    with connected(port) as connection:
        connection.sendall(head.replace("1.1", version).encode())
        time.sleep(0.05)
        connection.sendall(body)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).startswith(f"HTTP/1.1 {first}\r\n")


@pytest.mark.parametrize(
    ("line", "status"),
    [("OPTIONS *", "405"), ("GET *", "404"), ("GET http://localhost", "404"), ("HEAD /x", "404")],
)
def test_unusual_targets_are_told_in_the_usual_form(line, status, port):
    with connected(port) as connection:
        connection.sendall(f"{line} HTTP/1.1\r\nconnection: close\r\n\r\n".encode())
        answer = read_all(connection)
    assert answer.startswith(f"HTTP/1.1 {status} ") and "application/json" in answer


class Slow:
    """A pipeline that answers when it is told to; its streams have no end."""

    def __init__(self, pipeline):
        self.manifest, self.encode, self.asked = pipeline.manifest, pipeline.encode, []
        self.go, self.closed = threading.Event(), False

    def __call__(self, texts, waits=False):
        self.asked += texts if isinstance(texts, list) else [texts]
        if waits:
            self.go.wait()
        return [{} for _ in texts] if isinstance(texts, list) else {}

    def stream(self, text):
        try:
            while True:
                yield 4096 * "x"
        finally:
            self.closed = True


@pytest.fixture
def slow(folders, request):
    """The port of a server of a `Slow` pipeline, and its bundle; a parameter is the timeout."""
    bounds = Bounds(max_queue=3, max_tokens=2**23, timeout=getattr(request, "param", 200.0))
    service = Service([("letters", folders["letters"])], bounds=bounds, log=False)
    application = Application(service)
    [bundle] = application.bundles
    bundle.worker.pipeline = Slow(bundle.pipeline)
    with on_socket(service, application, send_buffer=4096) as port:
        try:
            yield port, bundle
        finally:
            bundle.pipeline.go.set()


def request_of(content, path="", headers=""):
    body = json.dumps(content).encode()
    head = f"{POST}{headers}content-length: {len(body)}\r\n\r\n"
    return head.replace("letters", f"letters{path}").encode() + body


def send(connection, content, path="", headers=""):
    connection.sendall(request_of(content, path, headers))


@contextlib.contextmanager
def three_waiting(port, bundle):
    """Three clients wait, who leave at the end, and then wait no more."""
    with contextlib.ExitStack() as stack:
        for count in (1, 2, 3):
            send(stack.enter_context(connected(port)), {"input": "leaves"})
            until(lambda: bundle.worker.waiting == count)  # noqa: B023
        yield
    until(lambda: bundle.worker.waiting == 0)


@pytest.mark.parametrize("slow", [2.0], indirect=True, ids=["timeout 2 s"])
def test_a_reader_that_reads_nothing_holds_back_only_its_stream(slow):
    port, bundle = slow
    with connected(port) as connection:
        send(connection, {"input": "a"}, "/stream")
        until(lambda: bundle.streams.pauses)
        assert ask(port, "/v1/bundles/letters", {"input": "b"})[0] == 200
        assert not bundle.pipeline.closed
        until(lambda: bundle.pipeline.closed)  # after the server's timeout
    assert bundle.streams.count == 0


def is_let_go(connection, seconds):
    """Whether the server ends a connection, of which nothing is read, within this time."""
    events = select.poll()
    events.register(connection, 0)  # only POLLHUP and POLLERR
    return bool(events.poll(1000 * seconds))


LARGE = 400_000 * "x"  # more than the server may have on its way
LATE = 60  # seconds, in which a client is let go that has half a second


@pytest.mark.parametrize("slow", [0.5], indirect=True, ids=["timeout 0.5 s"])
@pytest.mark.parametrize(
    ("content", "headers"),
    [
        ({"input": LARGE}, ""),
        ({"input": LARGE}, "connection: close\r\n"),
        ({"input": LARGE, "options": {}}, ""),
        ({"input": LARGE, "options": {}}, "connection: close\r\n"),
        ({"input": LARGE[:40_000]}, "connection: close\r\n"),
    ],
    ids=["direct", "direct, close", "application", "application, close", "a smaller one, close"],
)
def test_who_takes_nothing_of_an_answer_is_let_go(content, headers, slow):
    port, _ = slow
    with connected(port, receives=2048) as connection:
        send(connection, content, headers=headers)
        assert is_let_go(connection, LATE)


@pytest.mark.parametrize("slow", [0.5], indirect=True, ids=["timeout 0.5 s"])
def test_who_takes_an_answer_slowly_gets_all_of_it(slow):
    port, _ = slow
    with connected(port, receives=2048) as connection:
        send(connection, {"input": LARGE[:100_000]}, headers="connection: close\r\n")
        begun, size = time.monotonic(), 0
        while part := connection.recv(16_000):
            size += len(part)
            time.sleep(0.05)
    assert size > 100_000 and time.monotonic() - begun > 1


@pytest.mark.parametrize("behind", [b"", b"GET /v1/bundles HTTP/1.1\r\n\r\n"], ids=["", "another"])
def test_a_stream_ends_when_its_reader_leaves(behind, slow):
    port, bundle = slow
    with connected(port) as connection:
        send(connection, {"input": "a"}, "/stream")
        connection.sendall(behind)
        assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    until(lambda: bundle.pipeline.closed)  # long before the server's timeout


PLAIN, OTHER = {"input": "a"}, {"input": "b", "options": {}}


@pytest.mark.parametrize(
    "contents",
    [[PLAIN], [OTHER], [PLAIN, OTHER, PLAIN]],
    ids=["direct", "application", "three"],
)
def test_who_sends_no_more_gets_the_answers(contents, slow):
    port, bundle = slow
    with connected(port) as first, connected(port) as connection:
        send(first, {"input": "first", "options": {"waits": True}})
        until(lambda: bundle.pipeline.asked)
        for content in contents:
            send(connection, content)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(3 * LOOK)
        assert bundle.worker.waiting == 1
        bundle.pipeline.go.set()
        answers = read_all(connection)
    heads = answers.count("HTTP/1.1 200 OK\r\n")
    assert heads == answers.count('\r\n\r\n{"input"') == len(contents)
    assert answers.count("connection: close\r\n") == 1 and answers.endswith("}\n")


def test_who_sends_no_more_behind_what_is_no_http_gets_both_answers(slow):
    port, bundle = slow
    with connected(port) as connection:
        send(connection, {"input": "a", "options": {"waits": True}})
        connection.sendall(b"no HTTP\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        until(lambda: bundle.pipeline.asked)
        time.sleep(3 * LOOK)
        bundle.pipeline.go.set()
        assert re.findall(r"HTTP/1\.1 (\d+)", read_all(connection)) == ["200", "400"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_who_sends_no_more_gets_a_stream_until_he_leaves(version, slow):
    port, bundle = slow
    with connected(port) as connection:
        body = b'{"input": "a"}'
        head = POST.replace("letters", "letters/stream").replace("1.1", version)
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        file = connection.makefile("rb")
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        assert len(file.read(10**6)) == 10**6 and not bundle.pipeline.closed
        file.close()
    until(lambda: bundle.pipeline.closed)


def test_half_a_request_behind_which_nothing_comes_ends_the_connection(narrow):
    for part in ("POST /v1", POST, f"{POST}content-length: 9\r\n\r\n{{"):
        with connected(narrow) as connection:
            connection.sendall(part.encode())
            connection.shutdown(socket.SHUT_WR)
            begun = time.monotonic()
            assert read_all(connection) == "" and time.monotonic() - begun < 0.9  # not `idle`


def test_pages_of_other_origins_are_allowed_only_if_named(folders, client):
    from starlette.testclient import TestClient

    header = {"origin": "https://page.example"}
    assert "access-control-allow-origin" not in client.get("/v1/bundles", headers=header).headers
    service = Service([("letters", folders["letters"])], origins=["https://page.example"])
    with TestClient(Application(dataclasses.replace(service, log=False))) as other:
        response = other.get("/v1/bundles", headers=header)
        assert response.headers["access-control-allow-origin"] == "https://page.example"
        stranger = other.get("/v1/bundles", headers={"origin": "https://other.example"})
        assert "access-control-allow-origin" not in stranger.headers


def test_each_request_is_a_line_of_the_log(folders, capfd):
    with served({"letters": folders["letters"]}, log=True) as port:
        ask(port, "/v1/bundles/letters", GOOD)
        ask(port, "/%0a%1b[31mnothing")
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert '127.0.0.1 "POST /v1/bundles/letters" 200 ' in lines[0] and lines[0].endswith(" ms")
    assert '"GET /\\n\\x1b[31mnothing" 404 ' in lines[1]


def test_unknown_categories_are_in_the_answer_and_in_the_metrics(tmp_path):
    columns = [{"name": "load"}, {"name": "free", "categories": ["false", "true"]}]
    settings = {"rows": {"columns": columns}}
    folder = write_bundle(tmp_path, "Forecast", forecaster(), settings, tokenizer={})
    inputs = [[[1, True]], [[1, "True"]], [[1, "2"], [1, 2.0]], [[1, None]]]
    with served({"plan": folder}) as port:
        _, found = ask(port, "/v1/bundles/plan", {"inputs": inputs})
        content = {"inputs": inputs, "options": {"strict": True}}
        _, strict = ask(port, "/v1/bundles/plan", content)
        _, metrics = ask(port, "/metrics")
    known, same, unknown, missing = found["answers"]
    assert known["values"] == same["values"] != missing["values"]
    assert unknown["unknown"] == {"free": {"2": 2}}
    assert not any("unknown" in answer for answer in (known, same, missing))
    assert ["error" in answer for answer in strict["answers"]] == [0, 0, 1, 0]
    reason = "series, row 1: 'free' must be one of 'false', 'true'; received '2'."
    assert strict["answers"][2]["error"].endswith(reason)
    assert 'seqkeras_unknown_categories_total{bundle="plan",column="free"} 2.0' in metrics


def test_metrics_count_requests_batches_and_inputs(folders):
    with server(folders) as port:
        ask(port, "/v1/bundles/letters", {"inputs": ["up|bad", "up|ab", "bad"]})
        ask(port, "/v2/health/live")
        status, text = ask(port, "/metrics")
    assert status == 200
    for line in (
        'seqkeras_requests_total{api="plain",status="200"} 1.0',
        'seqkeras_requests_total{api="open_inference",status="200"} 1.0',
        'seqkeras_inputs_total{bundle="letters",outcome="answered"} 2.0',
        'seqkeras_inputs_total{bundle="letters",outcome="refused"} 1.0',
        'seqkeras_batch_size_sum{bundle="letters"} 3.0',
        'seqkeras_waiting{bundle="letters",kind="inputs"} 0.0',
    ):
        assert line in text


UPGRADE = (
    "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"
)
BODY = json.dumps(GOOD).encode()
WHOLE = f"{POST}{UPGRADE}content-length: {len(BODY)}\r\n\r\n".encode(), BODY
CHUNKED = (
    f"{POST}{UPGRADE}transfer-encoding: chunked\r\n\r\n".encode(),
    b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
)


@pytest.mark.parametrize("request_", [WHOLE, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("pieces", ["one", "two", "bytes"])
def test_who_asks_for_http_2_too_is_answered_by_http_1(request_, pieces, port):
    sent = b"".join(request_)
    parts = {"one": [sent], "two": request_, "bytes": [bytes([byte]) for byte in sent]}[pieces]
    with connected(port) as connection:
        for _ in range(2):  # the connection stays open
            for part in parts:
                connection.sendall(part)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.status == 200 and "text" in json.loads(response.read())
        connection.sendall(2 * sent)  # one behind another
        received = b""
        while received.count(b"HTTP/1.1 200 ") < 2 or received.count(b'"text"') < 2:
            received += connection.recv(65536)
            assert b" 400 " not in received

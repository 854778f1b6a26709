"""Requests that need no task of the event loop are answered as the application answers them."""

import asyncio
import gc
import http.client
import json
import re
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.connection import REST, Connection
from seqkeras.serving.http.departure import FEWEST, Deadlines, until_gone
from seqkeras.serving.http.server import _config
from tests.serving.answers import assert_same
from tests.serving.http.served import ask, in_place_of, served, until
from tests.serving.http.test_faults import (
    POST,
    connected,
    send,
    server,
    slow,  # noqa: F401
    three_waiting,
)
from tests.serving.zoo import INPUTS, STRANGE

GOOD = {"input": "up|bad"}
OF_LETTERS = [
    *({"input": value} for value in ("", " ", "sideways|bad", "up|" + 20 * "abc", 5, None, {})),
    *({"input": value} for value in (["up|bad"], {"text": "up|bad"}, {"text": 3}, True)),
    {"input": "up|bad", "options": {}},
    {"input": "up|bad", "options": {"num_beams": 3, "n_best": 2}},
    {"inputs": ["up|bad", "up|x"]},
    *({}, [], b"", b"{", b'{"input": "\xff"}', b'{"input": NaN}', b'{"input": "\\ud800"}'),
    b"\xef\xbb\xbf{}",
]
REQUESTS = [("letters", content) for content in OF_LETTERS]
REQUESTS += [(name, {"input": value}) for name, values in INPUTS.items() for value in values]
for text in STRANGE.values():
    REQUESTS += [(name, {"input": text}) for name in ("letters", "classes", "tags")]


def answered(port, name, body, headers=()):
    """The status, the headers and the body of a POST."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", f"/v1/bundles/{name}", body, dict(headers))
    response = connection.getresponse()
    told = {name: value for name, value in response.getheaders() if name != "date"}
    text = response.read().decode()
    connection.close()
    return response.status, told, text


@pytest.mark.parametrize(("name", "content"), REQUESTS, ids=ascii)
def test_a_request_is_answered_as_in_the_application(name, content, port, client):
    is_raw = isinstance(content, bytes)
    body = content if is_raw else json.dumps(content, ensure_ascii=False).encode()
    expected = client.post(f"/v1/bundles/{name}", content=body)
    status, headers, text = answered(port, name, body)
    assert status == expected.status_code and text.endswith("\n")
    found, wanted = (dict(each) for each in (headers, expected.headers))
    assert abs(int(found.pop("content-length")) - int(wanted.pop("content-length"))) < 40  # digits
    assert found == wanted
    assert_same(json.loads(text), expected.json())


def status_of(port, *pieces, pause=0.02):
    """The first line of the answer to a request that is sent in pieces."""
    with connected(port) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        return connection.makefile("rb").readline().decode().strip()


def pieces_of(content, cuts=()):
    """The head and the body of a request, the body cut at these places."""
    body = json.dumps(content).encode()
    places = [0, *cuts, len(body)]
    head = f"{POST}content-length: {len(body)}\r\n\r\n".encode()
    return [head, *(body[first:last] for first, last in zip(places, places[1:]))]


def test_a_plain_request_passes_no_application(folders):
    async def refuses(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 418, "headers": headers})
        await send({"type": "http.response.body"})

    large = {"input": HIGH_WATER_LIMIT * "x"}
    passes, fails = "HTTP/1.1 200 OK", "HTTP/1.1 418 I'm a Teapot"
    with in_place_of(folders["letters"], refuses) as port:
        for content, status in ((GOOD, passes), (GOOD | {"options": {}}, fails)):
            assert status_of(port, b"".join(pieces_of(content))) == status
            assert status_of(port, *pieces_of(content)) == status
            assert status_of(port, *pieces_of(content, cuts=[3, 7])) == status
        assert status_of(port, *pieces_of(large)) == fails
        many = pieces_of(GOOD, cuts=[2, 4, 6, 8])
        assert status_of(port, *many, pause=REST / 3) == fails


(HEAD, BODY), (_, OTHER) = pieces_of(GOOD), pieces_of({"input": "up|cab"})


@pytest.mark.parametrize(
    ("pieces", "pause"),
    [
        ([HEAD, BODY + HEAD, OTHER + HEAD, BODY], 0.02),
        ([HEAD + BODY + HEAD + OTHER + HEAD + BODY], 0),
        ([HEAD, BODY + HEAD, OTHER + HEAD, BODY], 3 * REST),
    ],
    ids=["bodies with the next head", "one piece", "bodies that come later"],
)
def test_requests_in_any_pieces_are_answered_in_order(pieces, pause, port):
    with connected(port) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        stream = connection.makefile("rb")
        for text in ("up|bad", "up|cab", "up|bad"):
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            head = [*iter(stream.readline, b"\r\n")]
            [size] = (int(line[16:]) for line in head if line.startswith(b"content-length: "))
            assert json.loads(stream.read(size))["input"] == text


@pytest.mark.parametrize("pause", [0.02, 3 * REST], ids=["at once", "later"])
def test_who_leaves_within_a_body_is_counted(pause, folders):
    with served({"letters": folders["letters"]}) as port:
        with connected(port) as connection:
            connection.sendall(pieces_of(GOOD)[0] + b"{")
            time.sleep(pause)
        line = 'seqkeras_requests_total{api="plain",status="499"} 1.0'
        until(lambda: line in ask(port, "/metrics")[1])


def test_access_is_refused_as_in_the_application(folders):
    with served(
        {"letters": folders["letters"]}, token="se-cret", hosts=(), origins=["https://a.example"]
    ) as port:
        good = {"authorization": "Bearer se-cret"}
        for headers, expected in (
            (good, 200),
            ({}, 401),
            (good | {"host": "evil.example"}, 421),
            (good | {"content-encoding": "gzip"}, 415),
        ):
            body = json.dumps(GOOD).encode()
            status, _, text = answered(port, "letters", body, headers)
            assert status == expected
        assert json.loads(text) == {"error": "the body must not be compressed"}
        origin = good | {"origin": "https://a.example"}
        _, headers, _ = answered(port, "letters", body, origin)
        assert headers["access-control-allow-origin"] == "https://a.example"


@pytest.mark.parametrize("slow", [1.0], indirect=True, ids=["timeout 1 s"])
def test_a_request_out_of_time_is_told_and_frees_its_place(slow):  # noqa: F811
    port, bundle = slow
    with connected(port) as first:
        send(first, {"input": "first", "options": {"waits": True}})
        until(lambda: bundle.pipeline.asked)
        status, content = ask(port, "/v1/bundles/letters", {"input": "late"})
        assert status == 504 and content["error"].startswith("there was no answer in time")
        assert bundle.worker.waiting == 0


def test_a_full_queue_is_told_and_who_leaves_is_counted_and_frees_his_place(slow):  # noqa: F811
    port, bundle = slow
    with connected(port) as first:
        send(first, {"input": "first", "options": {"waits": True}})
        until(lambda: bundle.pipeline.asked)
        with three_waiting(port, bundle):
            status, headers, text = answered(port, "letters", json.dumps({"input": "x"}).encode())
            assert (status, headers["retry-after"]) == (429, "1")
            assert "3 inputs wait already" in text
            assert ask(port, "/v1/bundles/letters", {"inputs": [*"abc"]})[0] == 429
        with connected(port) as last:
            send(last, {"inputs": [*"abc"]})
            until(lambda: bundle.worker.waiting == 3)
            bundle.pipeline.go.set()
            for connection in (first, last):
                assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    assert bundle.pipeline.asked == ["first", "a", "b", "c"]
    metrics = ask(port, "/metrics")[1]
    for status, count in ((429, 2), (499, 3)):
        line = rf'seqkeras_requests_total{{api="plain",status="{status}"}} (\d+)'
        assert int(re.search(line, metrics)[1]) == count
    for line in ('inputs_total{bundle="letters",outcome="refused"} 4', 'kind="inputs"} 0.0'):
        assert line in metrics


def test_a_connection_stays_open_behind_a_request_that_is_refused_at_once(folders):
    with server(folders, max_queue=0, idle=0.2) as port, connected(port) as connection:
        stream = connection.makefile("rb")
        for _ in range(2):
            send(connection, GOOD)
            assert stream.readline().startswith(b"HTTP/1.1 413 ")
            while not stream.readline().endswith(b"}\n"):
                pass
            time.sleep(0.5)


def told(folders, request, headers, *parts):
    """All bytes until the connection ends, when an application sends a body in parts."""

    async def sends(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    with in_place_of(folders["letters"], sends) as port, connected(port) as connection:
        connection.sendall(request)
        return connection.makefile("rb").read()


@pytest.mark.parametrize("parts", [[b"ab"], [b"ab", b"cd"]], ids=["shorter", "longer"])
def test_a_body_of_another_length_than_its_header_says_ends_the_connection(parts, folders):
    text = told(folders, b"GET / HTTP/1.1\r\n\r\n", [(b"content-length", b"3")], *parts)
    assert text.endswith(b"\r\n\r\nab")


def test_a_client_of_http_1_0_gets_no_chunks(folders):
    text = told(folders, b"GET / HTTP/1.0\r\n\r\n", [], b"ab", b"c")
    assert text.endswith(b"connection: close\r\n\r\nabc") and b"chunked" not in text


def test_many_pieces_for_a_client_that_has_gone_are_not_told_in_the_log(folders, caplog):
    left, sent = threading.Event(), threading.Event()

    async def sends(scope, receive, send):
        piece = {"type": "http.response.body", "body": b"x", "more_body": True}
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(piece)
        await asyncio.to_thread(left.wait)
        for _ in range(20):
            await send(piece)
        await send({"type": "http.response.body"})
        sent.set()

    with in_place_of(folders["letters"], sends) as port:
        with connected(port) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while not connection.recv(65536).endswith(b"x\r\n"):
                pass
        time.sleep(REST)
        left.set()
        assert sent.wait(60)
    assert caplog.text == ""


def exchanged(folders, body, look):
    """What is written for two requests with one body; `look` takes the connection between them."""
    application = Application(Service([("letters", folders["letters"])], log=False))
    request = f"{POST}content-length: {len(body)}\r\n\r\n{body}".encode()

    async def exchange():
        config = _config(application, Service([]), 1)
        config.load()
        state = SimpleNamespace(
            connections=set(), tasks=set(), default_headers=[], total_requests=0
        )
        connection = Connection(config=config, server_state=state, app_state={})
        written = []  # all that the connection writes
        transport = SimpleNamespace(
            write=written.append,
            close=lambda: None,
            is_closing=lambda: False,
            get_write_buffer_size=lambda: 0,
            get_extra_info=lambda name, default=None: default,
        )
        connection.connection_made(transport)
        for count in (1, 2):
            connection.data_received(request)
            while len(written) < count or state.tasks:
                await asyncio.sleep(0.001)
            if count == 1:
                look(connection)
        connection.connection_lost(None)
        return written

    written = asyncio.run(exchange())
    application.bundles.close()
    return written


@pytest.mark.parametrize("more", [{}, {"options": {}}], ids=["direct", "application"])
def test_an_answer_is_one_write_and_its_request_is_let_go(more, folders):
    seen = []
    gc.disable()
    try:
        written = exchanged(
            folders,
            json.dumps(GOOD | more),
            lambda connection: seen.append(weakref.ref(connection.cycle)),
        )
        assert seen[0]() is None
    finally:
        gc.enable()
    assert len(written) == 2
    for part in written:
        assert part.startswith(b"HTTP/1.1 200 OK\r\n") and b'\r\n\r\n{"input"' in part


def test_a_block_ends_when_its_time_is_over():
    async def late(seconds):
        deadlines, times = Deadlines(seconds), []
        for _ in range(2):
            begun = time.perf_counter()
            with pytest.raises(TimeoutError), until_gone({}, deadlines):
                await asyncio.sleep(60)
            times.append(time.perf_counter() - begun)
        return times

    assert all(0.05 <= seconds < 5 for seconds in asyncio.run(late(0.05)))


def test_blocks_that_have_ended_are_not_kept():
    async def many():
        deadlines = Deadlines(60.0)
        with until_gone({}, deadlines):  # the oldest one goes on
            for _ in range(5 * FEWEST):
                with until_gone({}, deadlines):
                    pass
            return len(deadlines._blocks)

    assert asyncio.run(many()) <= FEWEST

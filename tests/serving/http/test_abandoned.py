"""What nobody waits for any more: it ends, and so does the server."""

import asyncio
import contextlib
import re
import signal
import threading
import time

import numpy as np
import pytest

from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.http.departure import Abandoned, Wanted
from seqkeras.serving.http.served_bundle import LAST
from seqkeras.serving.http.streams import Streams
from seqkeras.serving.pipelines import open_bundle
from tests.conftest import others_long
from tests.serving import toy_language_model
from tests.serving.http.served import as_process, ask, in_place_of, on_socket, served, until
from tests.serving.http.test_faults import Slow, connected, read_all, send
from tests.serving.pipelines import toys
from tests.serving.written import model_of
from tests.serving.zoo import INPUTS

LIMIT = 5003
# Minutes of work: each of the inputs is a search of its own, of thousands of steps.
ENDLESS = {
    "inputs": 67 * ["bad"],
    "options": {"max_new_tokens": 5000, "min_new_tokens": 5000, "num_beams": 11},
}
ABANDONED = re.compile(r'seqkeras_inputs_total\{bundle="\w+",outcome="abandoned"\} ([1-9]\d*)')


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    model = toy_language_model.ToyLanguageModel(limit=LIMIT, unknown=-1.0)
    return toy_language_model.write_bundle(tmp_path_factory.mktemp("endless") / "letters", model)


def server(folder, **bounds):
    return served({"letters": folder}, bounds=Bounds(**bounds))


def is_abandoned(port):
    return ABANDONED.search(ask(port, "/metrics")[1]) is not None


def is_running(port):
    """Whether some of the inputs wait, but not all: the worker has taken the others."""
    line = r'seqkeras_waiting\{bundle="\w+",kind="inputs"\} (\d+)'
    return 0 < int(re.search(line, ask(port, "/metrics")[1])[1]) < len(ENDLESS["inputs"])


def test_what_a_client_asked_for_ends_when_it_leaves(endless):
    with server(endless, timeout=200.0) as port:
        with connected(port) as connection:
            send(connection, ENDLESS)
            until(lambda: is_running(port))
            assert not is_abandoned(port)
        until(lambda: is_abandoned(port))
        content = {"input": "bad", "options": {"max_new_tokens": 3}}
        assert ask(port, "/v1/bundles/letters", content)[0] == 200


def test_what_is_out_of_time_ends(endless):
    with server(endless, timeout=0.5) as port:
        assert ask(port, "/v1/bundles/letters", ENDLESS)[0] == 504
        until(lambda: is_abandoned(port))


def test_sigterm_ends_the_process_in_time_whatever_runs(endless):
    with (
        as_process(f"letters={endless}", "--no-log", "--timeout", 2) as (process, _, port),
        connected(port) as connection,
    ):
        send(connection, ENDLESS)
        until(lambda: is_running(port))
        process.send_signal(signal.SIGTERM)
        assert b"504" in connection.makefile("rb").readline()  # it is told
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == ""


@pytest.mark.parametrize("processes", others_long([1, 2]))
def test_sigterm_ends_the_process_within_a_graph_too(tmp_path, processes):
    graph = model_of(
        """
        model (int64[batch,length] token_ids) => (float[batch,1] output) {
            numbers = Cast <to = 1> (token_ids)
            mean = ReduceMean (numbers, last)
            yes = Constant <value = bool {1}> ()
            output = Loop (turns, yes, mean) <body = turn (
                int64 place, bool before, float[batch,1] x
            ) => (bool after, float[batch,1] y) {
                after = Identity (before)
                y = Tanh (x)
            }>
        }
        """,
        turns=np.int64(10**15),
    )
    folder = toys.write_bundle(tmp_path / "letters", "Embed", graph)
    options = "--no-log", "--timeout", 1, "--processes", processes
    with as_process(f"letters={folder}", *options) as (process, _, port):
        assert ask(port, "/v1/bundles/letters", {"input": "the cat"})[0] == 504
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == f"seqkeras-serving: what runs did not end within {LAST:g} s: it is given up\n"


def test_a_stream_that_outlasts_the_server_is_told_so(folders, capfd):
    class Endless(Slow):
        def stream(self, text):
            while True:
                time.sleep(0.01)
                yield "x"

    service = Service([("letters", folders["letters"])], bounds=Bounds(timeout=0.5), log=False)
    application = Application(service)
    [bundle] = application.bundles
    bundle.worker.pipeline = Endless(bundle.pipeline)
    found = []
    with contextlib.ExitStack() as stack, on_socket(service, application) as port:
        connection = stack.enter_context(connected(port))
        send(connection, {"input": "a"}, "/stream")
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        reader = threading.Thread(target=lambda: found.append(read_all(connection)))
        reader.start()
        stack.callback(reader.join)
    *_, last, end = found[0].split("\n\n")
    assert last.endswith('event: error\ndata: {"error": "the server ends: ask again"}')
    assert end == "\r\n0\r\n\r\n" and "Traceback" not in capfd.readouterr().err


def test_what_the_end_of_the_server_interrupts_is_no_error_of_it(folders, capfd):
    asked = threading.Event()

    async def waits(scope, receive, send):
        asked.set()
        await asyncio.Event().wait()

    with contextlib.ExitStack() as stack:
        with in_place_of(folders["letters"], waits, bounds=Bounds(timeout=0.5)) as port:
            connection = stack.enter_context(connected(port))
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert asked.wait(60)
        assert read_all(connection) == ""
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", INPUTS)
def test_every_pipeline_asks_before_each_run_of_a_graph(folders, name):
    runs, left = [], set()

    def before():
        runs.append(None)
        if len(runs) in left:
            raise Abandoned

    pipeline = open_bundle(folders[name], threads=1, before=before)
    value = INPUTS[name][0]
    value = tuple(value) if isinstance(value, list) and name != "series" else value
    if name == "series":
        value = np.float32(value)
    pipeline(value)
    count = len(runs)
    left.add(2 * count)
    with pytest.raises(Abandoned):
        pipeline(value)
    assert count >= 1 and len(runs) == 2 * count


def test_what_one_thread_is_at_is_no_matter_of_another():
    wanted, found = Wanted(), []
    wanted.require()
    with wanted.while_(lambda: False):
        with pytest.raises(Abandoned):
            wanted.require()
        other = threading.Thread(target=lambda: found.append(wanted.require()))
        other.start()
        other.join()
    wanted.require()
    assert found == [None]


def test_a_stream_whose_reader_leaves_ends_within_a_piece():
    wanted, ended = Wanted(), threading.Event()

    def silent():
        try:
            while True:
                wanted.require()
                time.sleep(0.001)
            yield
        finally:
            ended.set()

    async def test():
        streams = Streams(Bounds(timeout=0.05), wanted)
        with pytest.raises(TimeoutError):
            await anext(streams.read(silent))
        assert await asyncio.to_thread(ended.wait, 60)
        until(lambda: streams.count == 0)
        assert [piece async for piece in streams.read(lambda: iter("ab"))] == ["a", "b"]
        for thread in streams.close():
            await asyncio.to_thread(thread.join)

    asyncio.run(asyncio.wait_for(test(), 60))

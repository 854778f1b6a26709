"""Answers that are generated together: each is the one that its client alone would get."""

import asyncio
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.decoding import Size, Together
from seqkeras.serving.http import worker as worker_module
from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.http.departure import Wanted
from seqkeras.serving.http.metrics import BundleMetrics, Metrics
from seqkeras.serving.http.served_bundle import Opening
from seqkeras.serving.http.shared import Shared
from seqkeras.serving.http.worker import Worker
from tests.serving.http.served import ask, served, until
from tests.serving.http.test_abandoned import ABANDONED
from tests.serving.http.test_faults import connected, send
from tests.serving.test_together import BEAMS, GREEDY, LONG, SAMPLES, random_texts

KINDS = [GREEDY | LONG, BEAMS | LONG, GREEDY, SAMPLES, LONG | {"sample": True, "seed": 3}]
ATTENDING = {"attention": True}
OF_TRANSLATE = [GREEDY | LONG, BEAMS | LONG, GREEDY | ATTENDING, BEAMS | {"attention": False}]

SIZE = "sum", "count"
ANSWERED = re.compile(ABANDONED.pattern.replace("abandoned", "answered"))


@pytest.fixture(scope="module", params=["Generate", "Translate"])
def folder(request, letters_bundle):
    return letters_bundle(request.param)


def read_stream(port, content):
    """The pieces of a stream."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/bundles/toy/stream", json.dumps(content))
        lines = connection.getresponse().read().decode().split("\n")
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    return [each["text"] for each in data if "text" in each]


def test_clients_get_the_answers_of_each_alone(folder):
    pipeline, draw = serving.load(folder, threads=1), np.random.default_rng(0)
    kinds = OF_TRANSLATE if type(pipeline).__name__ == "Translate" else KINDS
    requests = [
        (random_texts(draw, int(draw.integers(1, 4))), kinds[draw.integers(len(kinds))])
        for _ in range(24)
    ]
    texts = random_texts(draw, 8)
    with served({"toy": folder}) as port, concurrent.futures.ThreadPoolExecutor(16) as clients:
        answered = [
            clients.submit(ask, port, "/v1/bundles/toy", {"inputs": inputs, "options": options})
            for inputs, options in requests
        ]
        streamed = [clients.submit(read_stream, port, {"input": text}) for text in texts]
    for (inputs, options), future in zip(requests, answered, strict=True):
        status, content = future.result()
        assert status == 200
        alone = [pipeline(text, **options) for text in inputs]
        assert [each["text"] for each in content["answers"]] == [each.text for each in alone]
        scores = [each["score"] for each in content["answers"]]
        np.testing.assert_allclose(scores, [each.score for each in alone], rtol=1e-4)
    for text, future in zip(texts, streamed, strict=True):
        assert "".join(future.result()) == pipeline(text, num_beams=1).text


def test_a_refused_input_fails_alone(folder):
    with served({"toy": folder}, bounds=Bounds(max_tokens=20)) as port:
        content = {"inputs": ["abc", 5, "ml", 30 * "a"], "options": GREEDY | LONG}
        status, answer = ask(port, "/v1/bundles/toy", content)
        assert status == 200
        first, refused, last, long = answer["answers"]
        assert first["text"] and last["text"]
        assert refused["error"].endswith("t must be a string; received int 5.")  # prompt, or text
        assert long["error"] == "an input may have 20 tokens; it has 30"
        for options, message in (
            ({"num_beams": 0}, "num_beams"),
            ({"attention": 0}, "attention mu"),
        ):
            status, answer = ask(port, "/v1/bundles/toy", {"input": "abc", "options": options})
            assert status == 400 and message in answer["error"]


def test_a_fault_of_ours_fails_what_is_on_its_way_and_no_later_request(folder, monkeypatch, capfd):
    steps, step = itertools.count(), Together.step

    def faulty(together):
        if next(steps) == 2:
            raise RuntimeError("a fault of ours")
        step(together)

    monkeypatch.setattr(Together, "step", faulty)
    content = {"input": "abc", "options": GREEDY | LONG}
    with served({"toy": folder}) as port:
        assert ask(port, "/v1/bundles/toy", content)[0] == 500
        assert ask(port, "/v1/bundles/toy", content)[0] == 200
    assert "RuntimeError: a fault of ours" in capfd.readouterr().err


def test_what_nobody_waits_for_leaves_the_others(folder):
    endless = {"inputs": ["abc"] * 300, "options": {"num_beams": 13, **LONG}}
    content = {"input": "abc", "options": GREEDY | LONG}
    with served({"letters": folder}, bounds=Bounds(max_batch=8)) as port:

        def is_abandoned():  # unless the client leaves between two batches
            with connected(port) as connection:
                send(connection, endless)
                until(lambda: ANSWERED.search(ask(port, "/metrics")[1]))
                time.sleep(0.03)
            status, answer = ask(port, "/v1/bundles/letters", content)
            assert status == 200 and answer["text"]
            return ABANDONED.search(ask(port, "/metrics")[1])

        until(is_abandoned)


def test_streams_go_on_beside_a_batch_that_is_answered_apart(letters_bundle):
    folder = letters_bundle("Translate")
    heavy = {"inputs": ["abc"] * 128, "options": ATTENDING | LONG | {"num_beams": 13}}
    with served({"toy": folder}) as port, concurrent.futures.ThreadPoolExecutor(1) as client:
        answered = client.submit(ask, port, "/v1/bundles/toy", heavy)
        time.sleep(0.3)  # its first batch takes longer
        pieces = [read_stream(port, {"input": "abc"}) for _ in range(3)]
        assert answered.result()[0] == 200
    text = serving.load(folder)("abc", num_beams=1).text
    assert ["".join(each) for each in pieces] == 3 * [text]


async def in_worker(pipeline, use):
    """Return what a function of a worker gives."""
    worker = Worker(pipeline, Bounds(), BundleMetrics(Metrics(), "toy"), Wanted())
    try:
        return await asyncio.wait_for(use(worker), 60)
    finally:
        for thread in worker.close():
            await asyncio.to_thread(thread.join)


def test_what_joins_does_not_put_off_the_next_step(folder, monkeypatch):
    pipeline, short, most, begun = serving.load(folder, threads=1), {"regex": "[a-d]"}, 300, []
    begin = Shared.begin

    async def use(worker):
        async def ask_again():
            worker.add(["ab"], short, "short")

        def begin_and_ask_again(shared, pipeline, options, waiting, *others):
            begin(shared, pipeline, options, waiting, *others)
            if options == short and len(begun) < most:
                begun.append(waiting)
                asyncio.run_coroutine_threadsafe(ask_again(), loop).result(60)

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(Shared, "begin", begin_and_ask_again)
        [answer] = worker.add(["abc"], GREEDY | LONG, "long")
        await ask_again()
        assert (await answer).text

    asyncio.run(in_worker(pipeline, use))
    assert len(begun) < most


def test_no_more_inputs_are_on_their_way_than_the_bounds_allow():
    shared = Shared(max_work=100, max_count=7, deliver=None)
    for light in (True, False):
        assert [shared.room(work, light) for work in (1, 30, 1000)] == [7, 3, 1]


def test_short_answers_do_not_wait_for_long_ones_that_began_with_them(letters_bundle):
    pipeline, delivered = serving.load(letters_bundle("Generate"), threads=1), {}
    options = {"sample": True, "seed": 3, "regex": "[a-d]{1,30}"}

    def deliver(inputs, answers, seconds, count):
        assert count >= len(texts) - len(delivered)
        delivered.update((each.value, (steps, answer)) for each, answer in zip(inputs, answers))

    shared, steps = Shared(max_work=1000, max_count=7, deliver=deliver), 0
    texts = "ab", "cd", "ef", "gh", "ij"
    inputs = [SimpleNamespace(value=text, tell=None) for text in texts]
    shared.begin(pipeline, options, inputs, 1)
    while len(shared):
        assert len(shared) == len(inputs) - len(delivered)
        steps += 1
        shared.step()
    assert len({step for step, _ in delivered.values()}) > 2
    for text, (step, answer) in delivered.items():
        alone = pipeline(text, **options)
        assert answer.text == alone.text and step == alone.num_new_tokens


def test_requests_for_many_answers_are_not_among_the_light_ones(folder, monkeypatch):
    pipeline, seen, begin = serving.load(folder, threads=1), [], Shared.begin

    def seeing(shared, pipeline, options, waiting, work, light):
        seen.append((len(waiting), work, light))
        begin(shared, pipeline, options, waiting, work, light)

    monkeypatch.setattr(Shared, "begin", seeing)

    async def use(worker):
        answers = worker.add(64 * ["ab"], GREEDY, "greedy")
        answers += worker.add(["ab"], GREEDY, "greedy") + worker.add(["ab"], BEAMS, "beams")
        answers += worker.add(3 * ["ab"], BEAMS, "beams")
        pieces = [piece async for piece in worker.stream("ab", {}, "stream", pipeline)]
        return await asyncio.gather(*answers), "".join(pieces)

    answers, text = asyncio.run(in_worker(pipeline, use))
    assert sorted(seen) == sorted(
        [(64, 40, False), (1, 40, True), (1, 120, True), (3, 120, False), (1, 40, True)]
    )
    assert {each.text for each in answers[:65]} == {text} == {pipeline("ab", **GREEDY).text}
    assert {each.text for each in answers[65:]} == {pipeline("ab", **BEAMS).text}


def test_a_slow_reader_gets_what_waits_as_one_piece(folder, monkeypatch):
    pipeline = serving.load(folder, threads=1)
    monkeypatch.setattr(worker_module, "AHEAD", 3)
    streamed = "".join(pipeline.stream("ab"))

    async def use(worker):
        pieces = worker.stream("ab", {}, "stream", pipeline)
        found = [await anext(pieces)]
        while len(worker._shared):
            await asyncio.sleep(0.01)
        return found + [piece async for piece in pieces]

    found = asyncio.run(in_worker(pipeline, use))
    assert "".join(found) == streamed and len(found) <= 3 < len(streamed)


def test_inputs_wait_for_memory_and_what_never_fits_is_refused(folder):
    pipeline = serving.load(folder, threads=1)
    num_bytes = pipeline._graphs._decoder._num_bytes
    opening = Opening(threads=1, cache_bytes=num_bytes(Size(4, 40, 1, 12)))
    texts = random_texts(np.random.default_rng(0), 12)
    with (
        served({"toy": folder}, opening=opening) as port,
        concurrent.futures.ThreadPoolExecutor(12) as clients,
    ):
        answered = [
            clients.submit(ask, port, "/v1/bundles/toy", {"input": text, "options": BEAMS})
            for text in texts
        ]
        status, answer = ask(
            port, "/v1/bundles/toy", {"input": "abcdefghijkl", "options": {"num_beams": 9}}
        )
        assert status == 400 and "KiB of caches, 9 beams or samples of up to 40" in answer["error"]
        for text, future in zip(texts, answered, strict=True):
            assert future.result()[1]["text"] == pipeline(text, **BEAMS).text


def test_the_size_of_a_batch_is_the_number_of_inputs_on_their_way(folder):
    content = {"inputs": ["abc", "ml", "dead"], "options": GREEDY | LONG}
    with served({"toy": folder}) as port:
        assert ask(port, "/v1/bundles/toy", content)[0] == 200
        text = ask(port, "/metrics")[1]
    size = {name: float(re.search(rf"batch_size_{name}{{.*}} (\S+)", text)[1]) for name in SIZE}
    assert 1 < size["sum"] / size["count"] <= 3

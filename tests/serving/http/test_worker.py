"""Batches, bounds and departures, with a pipeline that says when it may go on."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.http.departure import Wanted
from seqkeras.serving.http.http_refusal import HttpRefusal, as_http
from seqkeras.serving.http.metrics import BundleMetrics, Metrics
from seqkeras.serving.http.streams import AHEAD, Streams
from seqkeras.serving.http.work import work_of
from seqkeras.serving.http.worker import Worker, size_of, tokens_of
from seqkeras.serving.manifest import BundleError, DecodingDefaults, Limits


class Pipeline:
    """Answers texts in capitals, "bad" not; the first call waits until `go` is set."""

    manifest = SimpleNamespace(limits=Limits(7, 5), decoding=DecodingDefaults(num_beams=2))

    def __init__(self):
        self.go, self.begun, self.calls = threading.Event(), threading.Event(), []

    def __call__(self, texts, **options):
        if texts == []:
            return []
        self.begun.set()
        assert self.go.wait(60)
        self.calls.append((texts, options))
        listed = texts if isinstance(texts, list) else [texts]
        for place, text in enumerate(listed):
            self.encode(text, f"texts[{place}]")
        if "broken" in listed:
            raise BundleError("the graphs gave nothing", where="/secret/folder")
        answers = [text.upper() for text in listed]
        return answers if isinstance(texts, list) else answers[0]

    def encode(self, text, name="text", truncate=False):
        if text == "bad":
            raise ValueError(f"{name} is bad.")
        return text


def run(test, **bounds):
    """Run a coroutine function with a `Pipeline` and its `Worker`."""

    async def running():
        pipeline = Pipeline()
        worker = Worker(pipeline, Bounds(**bounds), BundleMetrics(Metrics(), "toy"), Wanted())
        try:
            await asyncio.wait_for(test(pipeline, worker), 60)
        finally:
            pipeline.go.set()
            await ended(worker)

    asyncio.run(running())


async def ended(runner):
    """Close a `Worker` or `Streams`, and wait for its threads."""
    for thread in runner.close():
        await asyncio.to_thread(thread.join)


async def begun(pipeline, worker, text="first"):
    """Let a text wait, until the pipeline is at it."""
    [future] = worker.add([text], {}, "")
    await asyncio.to_thread(pipeline.begun.wait)
    return future


def test_what_waits_is_answered_together_by_its_options():
    async def test(pipeline, worker):
        first = await begun(pipeline, worker)
        texts = [worker.add([text], {}, "") for text in "abcde"]
        others = [worker.add([text], {"n_best": 2}, "2") for text in "fg"]
        pipeline.go.set()
        assert await first == "FIRST"
        assert [await future for [future] in texts + others] == [*"ABCDEFG"]
        expected = [("first", {}), ([*"abc"], {}), ([*"fg"], {"n_best": 2}), ([*"de"], {})]
        assert pipeline.calls == expected

    run(test, max_batch=3)


def test_a_batch_is_divided_by_its_work_and_others_take_their_turns_between():
    async def test(pipeline, worker):
        first = await begun(pipeline, worker)
        heavy = {"num_beams": 3, "max_new_tokens": 4}  # 12 tokens each
        texts = worker.add([*"abcde"], heavy, "heavy")
        others = worker.add([*"fg"], {"n_best": 1}, "1")  # 10 tokens each
        pipeline.go.set()
        assert await asyncio.gather(first, *texts, *others) == ["FIRST", *"ABCDEFG"]
        expected = [([*"ab"], heavy), ([*"fg"], {"n_best": 1}), ([*"cd"], heavy), ("e", heavy)]
        assert pipeline.calls[1:] == expected

    run(test, max_work=25)


class StepByStep(Pipeline):
    """Answers in steps of 0.08 seconds of a clock of its own, and gives way before each; the first
    begins when `go` is set."""

    def __init__(self):
        super().__init__()
        self.worker, self.seconds, self.steps = None, 0.0, []

    def __call__(self, text, max_new_tokens, num_beams=1):
        self.begun.set()
        assert self.go.wait(60)
        for _ in range(max_new_tokens):
            self.worker.give_way()
            self.steps.append(text)
            self.seconds += 0.08
        return text.upper()


@pytest.mark.parametrize(
    "beams, given, steps",
    [
        (64, [{"max_new_tokens": 2}], "HHaaHHH"),  # when the heavy one has taken 0.1 s
        (64, [{"max_new_tokens": 1}, {"max_new_tokens": 1}], "HHabHHH"),
        # as much as its own time, then in turn
        (64, [{"max_new_tokens": 3}, {"max_new_tokens": 1}], "HHaaaHbHH"),
        (64, [{"max_new_tokens": 5}, {"max_new_tokens": 1}], "HHaaaaaHHHb"),
        (8, [{"max_new_tokens": 3}], "HHHHHaaa"),  # less than a sixteenth: 5 * 8 / 3
    ],
)
def test_a_batch_gives_way_to_lighter_ones_for_half_of_its_time(beams, given, steps, monkeypatch):
    async def running():
        pipeline = StepByStep()
        clock = SimpleNamespace(perf_counter=lambda: pipeline.seconds)
        monkeypatch.setattr("seqkeras.serving.http.worker.time", clock)
        worker = Worker(pipeline, Bounds(), BundleMetrics(Metrics(), "toy"), Wanted())
        pipeline.worker = worker
        [heavy] = worker.add(["H"], {"max_new_tokens": 5, "num_beams": beams}, "heavy")
        await asyncio.to_thread(pipeline.begun.wait)
        worker.give_way()  # in another thread, which runs nothing
        light = [
            worker.add([name], options, name)[0] for name, options in zip("ab", given, strict=False)
        ]
        pipeline.go.set()
        assert await asyncio.gather(heavy, *light) == ["H", *"AB"[: len(given)]]
        assert "".join(pipeline.steps) == steps
        await ended(worker)

    asyncio.run(asyncio.wait_for(running(), 60))


@pytest.mark.parametrize(
    "options, work",
    [
        ({}, 10),
        ({"max_new_tokens": 3}, 6),
        ({"max_new_tokens": 99}, 10),
        ({"num_beams": 7, "n_best": 5, "max_new_tokens": 2}, 14),
        ({"sample": True}, 5),
        ({"sample": True, "n_best": 11}, 55),
        ({"stop": "x", "max_new_tokens": 3}, 3),
        ({"num_beams": "x", "max_new_tokens": None, "n_best": -1}, 10),  # refused by the pipeline
    ],
)
def test_the_work_of_an_answer_is_its_rows_times_their_tokens(options, work):
    assert work_of(Pipeline(), options) == work


def test_an_answer_of_too_much_work_is_refused():
    async def test(pipeline, worker):
        pipeline.go.set()
        options = {"num_beams": 7, "max_new_tokens": 4}
        found = await asyncio.gather(*worker.add([*"ab"], options, ""), return_exceptions=True)
        message = "an answer may take 25 tokens, beams or samples times new tokens; this may"
        assert {as_http(error).status for error in found} == {400}
        assert {str(error) for error in found} == {f"{message} take 28: ask for fewer"}
        assert pipeline.calls == []

    run(test, max_work=25)


def test_what_arrives_at_once_is_one_batch():
    async def test(pipeline, worker):
        pipeline.go.set()
        futures = [worker.add([text], {}, "")[0] for text in "abcde"]
        assert await asyncio.gather(*futures) == [*"ABCDE"]
        assert pipeline.calls == [([*"abcde"], {})]

    run(test)


def test_a_refused_text_fails_alone():
    async def test(pipeline, worker):
        pipeline.go.set()
        futures = worker.add(["a", "bad", "b", "broken", "bad"], {}, "")
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [found[0], found[2]] == ["A", "B"]
        assert [str(found[place]) for place in (1, 4)] == ["text is bad.", "text is bad."]
        assert as_http(found[3]).status == 500
        assert as_http(found[3]).message == "the bundle gave no answer: the graphs gave nothing"

    run(test)


def test_a_full_queue_is_refused_until_somebody_leaves():
    async def test(pipeline, worker):
        first = await begun(pipeline, worker)
        waiting = worker.add([*"abc"], {}, "")
        with pytest.raises(HttpRefusal, match="3 inputs wait already") as refused:
            worker.add(["d"], {"n_best": 2}, "2")
        assert refused.value.status == 429 and refused.value.headers == {"retry-after": "1"}
        with pytest.raises(HttpRefusal, match="may hold 3 inputs; it holds 4") as refused:
            worker.add([*"abcd"], {}, "")
        assert refused.value.status == 413
        waiting[1].cancel()
        [later] = worker.add(["d"], {"n_best": 2}, "2")
        pipeline.go.set()
        answered = await asyncio.gather(first, waiting[0], waiting[2], later)
        assert answered == ["FIRST", "A", "C", "D"]
        assert (["a", "c"], {}) in pipeline.calls
        assert worker.waiting == 0

    run(test, max_queue=3)


def test_an_input_of_too_many_tokens_is_refused_alone():
    async def test(pipeline, worker):
        pipeline.go.set()
        futures = worker.add([7 * "a", 8 * "a", "b"], {}, "")
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [found[0], found[2]] == [7 * "A", "B"]
        assert as_http(found[1]).status == 413
        assert str(found[1]) == "an input may have 7 tokens; it has 8"

    run(test, max_tokens=7)


def test_sizes_are_those_of_all_parts():
    assert size_of("abc") == 3
    assert size_of(("abc", ["de", {"f": "g", "h": (1, 2)}])) == 8
    assert tokens_of([1, 2, 3]) == tokens_of(SimpleNamespace(encodings=["ab", "c"])) == 3


def test_streams_take_turns_and_end_when_their_readers_leave():
    closed, log = [], []

    def letters(name, count):
        try:
            for place in range(count):
                log.append(name)
                yield f"{name}{place}"
        finally:
            closed.append(name)

    async def test():
        streams = Streams(Bounds(max_queue=2, timeout=60), Wanted())
        endless = streams.read(lambda: letters("e", 10**9))
        assert await anext(endless) == "e0"
        short = [piece async for piece in streams.read(lambda: letters("s", 3))]
        assert short == ["s0", "s1", "s2"]
        other = streams.read(lambda: letters("o", 10**9))
        await anext(other)
        with pytest.raises(HttpRefusal, match="too many streams"):
            await anext(streams.read(lambda: letters("x", 1)))
        await endless.aclose()
        await other.aclose()
        assert [piece async for piece in streams.read(lambda: letters("l", 1))] == ["l0"]
        with pytest.raises(ValueError, match="no"):
            await anext(streams.read(lambda: (_ for _ in ()).throw(ValueError("no"))))
        await ended(streams)
        assert streams.count == 0

    asyncio.run(asyncio.wait_for(test(), 60))
    assert sorted(closed) == ["e", "l", "o", "s"]
    assert log.count("e") <= 2 * AHEAD  # a reader that takes nothing does not run ahead

"""Clients of `benchmarks.generate_load`, each of whom asks again as soon as it is answered, and
those whom they ask: a server, or what joins waiting requests to batches."""

import contextlib
import http.client
import itertools
import json
import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

WARM_UP = 0.25  # of the seconds, not counted
HEADERS = {"content-type": "application/json"}
PATIENCE = 300  # seconds in which an answer must come


@dataclass(frozen=True)
class Request:
    """A text to answer, and the options of the pipeline."""

    text: str
    options: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The answer to a request, a character for each token; when it was asked for, and when its
    pieces came."""

    request: Request
    text: str
    asked: float
    came: list

    @property
    def seconds(self):
        """The seconds from the request to the end of the answer."""
        return self.came[-1] - self.asked

    def tokens_between(self, begin, end):
        """Return the number of tokens in a span of time, as if they came evenly."""
        within = min(self.came[-1], end) - max(self.asked, begin)
        return len(self.text) * max(within, 0.0) / self.seconds


@dataclass(frozen=True)
class Load:
    """The answers of a load in the order of the requests, and the span of time that counts."""

    answers: list
    begin: float
    end: float

    @property
    def tokens_per_second(self):
        """The rate of all clients together."""
        tokens = sum(answer.tokens_between(self.begin, self.end) for answer in self.answers)
        return tokens / (self.end - self.begin)

    @property
    def first_token(self):
        """The 95th percentile of the time to the first piece, in steps: the median time between
        two pieces of an answer."""
        spoken = [answer for answer in self.answers if answer.came]
        counted = [answer for answer in spoken if self.begin <= answer.asked <= self.end]
        firsts = [answer.came[0] - answer.asked for answer in counted]
        steps = np.concatenate([np.diff(answer.came) for answer in counted])
        return float(np.percentile(firsts, 95) / np.median(steps))


def put_load(ask, requests, clients, seconds):
    """Let clients ask, each again as soon as it is answered. They come one by one before the time
    that counts, so that they do not go on in step.

    Args:
        ask: takes a `Request`, returns its `Answer`.
        requests: what they ask, in turn.
        clients: how many they are.
        seconds: how long; `WARM_UP` comes before.

    Returns:
        The `Load`.
    """
    numbers, answers = itertools.count(), {}
    begin = time.perf_counter() + WARM_UP * seconds
    end = begin + seconds

    def client(place):
        time.sleep(WARM_UP * seconds * place / clients)
        while time.perf_counter() < end:
            number = next(numbers)
            answers[number] = ask(requests[number % len(requests)])

    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(client, place) for place in range(clients)]:
            done.result()
    return Load([answers[number] for number in sorted(answers)], begin, end)


class Server:
    """Asks a server's only bundle; a connection each thread.

    Args:
        port: its port on this machine.
    """

    path = "/v1/bundles/bundle"

    def __init__(self, port):
        self._port, self._own, self._connections = port, threading.local(), []
        self.url = f"http://127.0.0.1:{port}{self.path}"

    @staticmethod
    def body(request):
        """Return the body that asks for an answer."""
        return json.dumps({"input": request.text, "options": request.options})

    def ask(self, request):
        """Return the `Answer` to a request."""
        asked = time.perf_counter()
        text = json.loads(self._post(self.path, request).read())["text"]
        return Answer(request, text, asked, [time.perf_counter()])

    def stream(self, request):
        """Return the `Answer` to a request, whose pieces come one by one."""
        asked, pieces, came = time.perf_counter(), [], []
        for line in self._post(f"{self.path}/stream", request):
            if line.startswith(b"data: "):
                piece = json.loads(line[len(b"data: ") :]).get("text")
                if piece is not None:
                    pieces.append(piece)
                    came.append(time.perf_counter())
        return Answer(request, "".join(pieces), asked, came)

    @contextlib.contextmanager
    def busy_with(self, request):
        """Let a client ask for one answer again and again; it goes when the block ends."""
        connection, ends = self._connect(), []

        def client():
            while not ends:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection.request("POST", self.path, self.body(request), HEADERS)
                    connection.getresponse().read()

        thread = threading.Thread(target=client, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.append(True)
            with contextlib.suppress(OSError):
                connection.sock.shutdown(2)
            thread.join()

    def _post(self, path, request):
        """Return the response."""
        if not hasattr(self._own, "connection"):
            self._own.connection = self._connect()
        connection = self._own.connection
        connection.request("POST", path, self.body(request), HEADERS)
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"{path}: {response.status}: {response.read()[:200]!r}")
        return response

    def close(self):
        """Close the connections."""
        for connection in self._connections:
            connection.close()

    def _connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        self._connections.append(connection)
        return connection


class Batches:
    """Joins the requests that wait to a batch, as soon as one of those before is answered.

    Args:
        answer: takes a list of `Request`, returns their texts.
        most: requests of a batch.
        at_once: how many batches are answered at the same time.
    """

    def __init__(self, answer, most, at_once):
        self._answer, self._most, self._waiting = answer, most, queue.Queue()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(at_once)]
        for thread in self._threads:
            thread.start()

    def ask(self, request):
        """Return the `Answer` to a request."""
        asked, text = time.perf_counter(), Future()
        self._waiting.put((request, text))
        return Answer(request, text.result(), asked, [time.perf_counter()])

    def close(self):
        """End the threads, when no request waits."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self):
        while (first := self._waiting.get()) is not None:
            batch = [first]
            with contextlib.suppress(queue.Empty):
                while len(batch) < self._most:
                    batch.append(self._waiting.get_nowait())
            try:
                texts = self._answer([request for request, _ in batch])
            except Exception as error:
                for _, text in batch:
                    text.set_exception(error)
                continue
            for (_, text), found in zip(batch, texts, strict=True):
                text.set_result(found)

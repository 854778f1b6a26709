"""Closed-loop load on an HTTP server: each client asks again as soon as it is answered.

    python -m benchmarks.http_load URL BODIES.json CLIENTS SECONDS

BODIES.json is a list of strings, posted in turn. Prints JSON: the number of requests, requests per
second, the median and the 99th percentile of a request in ms. For machines without `wrk`; costs the
server's machine more processor time than wrk does.
"""

import asyncio
import itertools
import json
import sys
import time
import urllib.parse
from pathlib import Path

import numpy as np

WARM_UP = 0.2  # of the seconds, not counted


def requests_of(url, bodies):
    """Return the bytes of requests that post these strings."""
    address = urllib.parse.urlsplit(url)
    lines = f"POST {address.path} HTTP/1.1", f"host: {address.netloc}"
    head = "\r\n".join([*lines, "content-type: application/json", ""])
    return [f"{head}content-length: {len(body.encode())}\r\n\r\n{body}".encode() for body in bodies]


def ask(connection, request):
    """Return the seconds from a request to the end of its answer.

    Args:
        connection: a socket.
        request: the bytes.

    Raises:
        ValueError: if the status is another than 200.
    """
    begin = time.perf_counter()
    connection.sendall(request)
    head, body = b"", b""
    while not head:
        body += connection.recv(65_536)
        before, end, after = body.partition(b"\r\n\r\n")
        if end:
            head, body = before, after
    size = _length(head)
    while len(body) < size:
        body += connection.recv(65_536)
    seconds = time.perf_counter() - begin
    if not head.startswith(b"HTTP/1.1 200"):
        raise ValueError(f"no answer: {head[:80]}")
    return seconds


def _length(head):
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


async def _client(address, requests, begin, times, errors):
    """Ask until the end; return how often."""
    count = 0
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        for request in itertools.cycle(requests):
            asked = time.perf_counter()
            if asked >= begin.end:
                break
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_length(head))
            if not head.startswith(b"HTTP/1.1 200"):
                errors.append(head)
            count += 1
            if asked > begin.counted:
                times.append(time.perf_counter() - asked)
    finally:
        writer.close()
    return count


class _Times:
    def __init__(self, seconds):
        now = time.perf_counter()
        self.counted, self.end = now + WARM_UP * seconds, now + (1 + WARM_UP) * seconds


async def _load(url, bodies, clients, seconds):
    address, requests = urllib.parse.urlsplit(url), requests_of(url, bodies)
    times, errors, begin = [], [], _Times(seconds)
    counts = await asyncio.gather(
        *(_client(address, requests, begin, times, errors) for _ in range(clients))
    )
    if errors or not times:
        raise ValueError(f"{url}: {errors[0][:80] if errors else 'no answer'}")
    p50, p99 = np.percentile(times, (50, 99)) * 1000
    rates = {"requests": sum(counts), "per_second": len(times) / seconds}
    return rates | {"p50_ms": p50, "p99_ms": p99}


def main(arguments):
    """Put load on a server, and print what it bore."""
    url, bodies, clients, seconds = arguments
    bodies = json.loads(Path(bodies).read_text(encoding="utf-8"))
    print(json.dumps(asyncio.run(_load(url, bodies, int(clients), float(seconds)))))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The HTTP server beside its pipeline called in process, and beside LitServe and KServe's SDK.

    python -m benchmarks.server BUNDLE [--before CHECKOUT] [--rivals PYTHON] [--wrk FILE]
        [--json FILE] [--quick]

Each round runs, in turn: the pipeline in process in batches of as many as there are clients, the
server under that many clients that ask again as soon as they are answered, and the rivals under the
same. The load is wrk's where it is there, else our own client's (`benchmarks.http_load`), which
takes more of the processor from the server. With one client the time of a request is compared with
that of a call of the pipeline, a text each in turn.

On Linux the processor time of a request, of all threads of the server, is compared with that of a
text in process: unlike the rates, it says something on a machine that others use too. `before` is
the server of an earlier checkout.

BUNDLE may also be `minilm`: a classifier of MiniLM's size with random weights is made then.

The rivals run in an environment of benchmarks/requirements-server.txt, whose interpreter --rivals
names; without it they are left out.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import onnxruntime

from benchmarks import encoder_bundles, harness, http_load
from seqkeras import serving

GOALS = {"process": 0.7, "litserve": 2.0, "kserve": 2.0}
GOAL_OF_MADE = 0.9  # beside the process, of the classifier that is made here
OVER = 0.5  # ms that a request may take over the pipeline's own time
RIVALS = {"litserve": "/predict", "kserve": "/v1/models/bundle:predict"}
MADE = "minilm"  # the bundle that is made here
START = 60.0  # seconds in which a server must answer
SCRIPT = """
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
local bodies = {%s}
local place = 0
request = function()
  place = place %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[place])
end
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"requests": %%d, "per_second": %%f, "p50_ms": %%f, "p99_ms": %%f, ',
    summary.requests, summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
  io.write(string.format('"errors": %%d}\\n',
    errors.status + errors.connect + errors.read + errors.timeout))
end
"""


class Load:
    """Puts load on a server.

    Args:
        folder: for files.
        texts: what is asked in turn.
        wrk: its path, or None.
    """

    def __init__(self, folder, texts, wrk):
        self._wrk, self.name = wrk, "wrk" if wrk else "our own client"
        bodies = [json.dumps({"input": text}) for text in texts]
        self._bodies, self._script = folder / "bodies.json", folder / "script.lua"
        self._bodies.write_text(json.dumps(bodies), encoding="utf-8")
        quoted = ", ".join(f"[==[{body}]==]" for body in bodies)
        self._script.write_text(SCRIPT % quoted, encoding="utf-8")

    def __call__(self, url, clients, seconds):
        """Return the number of requests, how many a second, and the times of one in ms."""
        if not self._wrk:
            arguments = ["-m", "benchmarks.http_load", url, self._bodies, clients, seconds]
            return json.loads(harness.run_python(*arguments))
        command = [
            self._wrk,
            "-t1",
            "--timeout",
            "30s",
            f"-c{clients}",
            f"-d{max(1, round(seconds))}s",
            "-s",
            self._script,
            url,
        ]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"{self._wrk}: {done.stdout.strip() or done.stderr.strip()}")
        found = json.loads(re.search(r"^\{.*\}$", done.stdout, re.MULTILINE)[0])
        if found["errors"]:
            raise ValueError(f"{url}: {found['errors']} of the requests failed")
        return found


@contextlib.contextmanager
def running(command, url, body, folder=harness.CHECKOUT):
    """Run a server in a folder until the block ends, which begins when it answers; yields its
    id."""
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # LitServe leaves workers behind
    )
    try:
        _wait(process, url, body)
        yield process.pid
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process, url, body):
    deadline = time.monotonic() + START
    request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5):
            return
        time.sleep(0.1)
    raise ValueError(f"{url}: no answer; the server ended or did not start")


def processor_seconds(pid):
    """Return the processor time of a process and of those that it started; None if the system does
    not tell."""
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = (folder / f"task/{pid}/children").read_text().split()
    except OSError:
        return None
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(child) or 0.0 for child in children)


def _servers(options):
    """Return name -> (command, url, folder) of ours and of the others that are there."""
    servers = {"ours": _own_server(options, harness.CHECKOUT)}
    if options.before:
        servers["before"] = _own_server(options, options.before.resolve())
    for name, path in RIVALS.items():
        if options.rivals is None:
            print(f"{name}: left out; --rivals names the interpreter that has it")
            continue
        found = [options.rivals, "-c", f"import {name}"]
        if subprocess.run(found, capture_output=True).returncode:
            print(f"{name}: left out; pip install -r benchmarks/requirements-server.txt")
            continue
        [port] = harness.free_ports(1)
        script = harness.CHECKOUT / f"benchmarks/rival_{name}.py"
        command = [options.rivals, script, options.bundle, port]
        servers[name] = command, f"http://127.0.0.1:{port}{path}", harness.CHECKOUT
    return servers


def _own_server(options, checkout):
    [port] = harness.free_ports(1)
    command = [sys.executable, "-m", "serving", "serve", f"bundle={options.bundle.resolve()}"]
    command += ["--port", port, "--processes", options.processes]
    return command, f"http://127.0.0.1:{port}/v1/bundles/bundle", checkout


def _process_rate(pipeline, texts, size, seconds):
    """Return texts per second of calls with `size` texts, and the processor time of one in us."""
    batch = [texts[place % len(texts)] for place in range(size)]
    pipeline(batch)
    begin, used, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        pipeline(batch)
        count += size
    used = time.process_time() - used
    return count / (time.perf_counter() - begin), 1e6 * used / count


def _in_turn(url, pipeline, texts, seconds):
    """Return the median ms of a request of one client and of a call of the pipeline, a text each
    in turn."""
    requests = http_load.requests_of(url, [json.dumps({"input": text}) for text in texts])
    address = urllib.parse.urlsplit(url)
    asked, called, end = [], [], time.perf_counter() + seconds
    with socket.create_connection((address.hostname, address.port)) as connection:
        for text, request in itertools.cycle(zip(texts, requests)):
            asked.append(http_load.ask(connection, request))
            begin = time.perf_counter()
            pipeline(text)
            called.append(time.perf_counter() - begin)
            if time.perf_counter() > end:
                return 1000 * statistics.median(asked), 1000 * statistics.median(called)


def measure(options):
    """Put load on all in turn; returns the rows."""
    if str(options.bundle) != MADE:
        return _measure(options)
    with tempfile.TemporaryDirectory() as folder:
        options.bundle = Path(folder) / MADE
        encoder_bundles.export_classifier(
            encoder_bundles.make_classifier(MADE, options.quick), options.bundle
        )
        return [*_measure(options)]


def _measure(options):
    pipeline = serving.load(options.bundle)
    texts = [text for text in pipeline.manifest.examples if isinstance(text, str)]
    if not texts:
        raise ValueError(f"{options.bundle}: a bundle whose examples are texts is needed.")
    clients, seconds = (5, 0.3) if options.quick else (options.clients, options.seconds)
    servers = _servers(options)
    rates = {name: [] for name in ("process", *servers)}
    alone = {name: [] for name in ("process", *servers)}
    used = {name: [] for name in ("process", *servers)}
    with tempfile.TemporaryDirectory() as folder:
        load = Load(Path(folder), texts, options.wrk)
        for _ in range(harness.rounds_of(options)):
            rate, microseconds = _process_rate(pipeline, texts, clients, seconds)
            rates["process"].append(rate)
            used["process"].append(microseconds)
            for name, (command, url, checkout) in servers.items():
                with running(command, url, json.dumps({"input": texts[0]}), checkout) as pid:
                    load(url, clients, 0.5)  # not counted
                    begin = processor_seconds(pid)
                    found = load(url, clients, seconds)
                    rates[name].append(found["per_second"])
                    if begin is not None:
                        seconds_used = processor_seconds(pid) - begin
                        used[name].append(1e6 * seconds_used / found["requests"])
                    request, call = _in_turn(url, pipeline, texts, seconds / 2)
                    alone[name].append(request)
                    if name == "ours":
                        alone["process"].append(call)
    print(
        f"{clients} clients by {load.name}, {options.bundle}, medians of "
        f"{harness.rounds_of(options)} rounds; "
        f"{harness.machine(onnxruntime=onnxruntime.__version__)}"
    )
    goals = GOALS | ({"process": GOAL_OF_MADE} if options.bundle.name == MADE else {})
    return [*_rows(rates, clients, goals), *_rows_used(used, clients), *_rows_alone(alone)]


def _rows(rates, clients, goals):
    for name, found in rates.items():
        if name == "ours":
            continue
        ratio = statistics.median(own / other for own, other in zip(rates["ours"], found))
        case = f"server c{clients} vs {name}"
        if name == "process":
            case = f"{case} b{clients}"
        medians = map(statistics.median, (rates["ours"], found))
        yield harness.Row(case, *medians, "requests/s", ratio, goals.get(name))


def _rows_used(used, clients):
    for name, found in used.items():
        if name == "ours" or not (used["ours"] and found):
            continue
        ratio = statistics.median(other / own for own, other in zip(used["ours"], found))
        case = f"server c{clients} processor time vs {name}"
        case = f"{case} b{clients}" if name == "process" else case
        yield harness.Row(case, *map(statistics.median, (used["ours"], found)), "us", ratio)


def _rows_alone(alone):
    for name, found in alone.items():
        if name == "ours":
            continue
        over = OVER if name == "process" else 0.0
        pairs = zip(alone["ours"], found)
        ratio = statistics.median((other + over) / own for own, other in pairs)
        case = f"server c1 vs {name}" + (f" b1 and {over:g} ms" if over else "")
        medians = map(statistics.median, (alone["ours"], found))
        yield harness.Row(case, *medians, "ms", ratio, 1.0)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("server", __doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help=f"Folder of the bundle, or {MADE}.")
    parser.add_argument(
        "--clients", type=harness.count, default=64, help="Clients at once. Default: 64."
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="Seconds of a load. Default: 5.")
    parser.add_argument(
        "--rounds", type=harness.count, default=3, help=harness.ROUNDS_HELP.format(3)
    )
    parser.add_argument("--processes", default="1", metavar="N", help="Of our server. Default: 1.")
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="Checkout of an earlier server."
    )
    parser.add_argument("--rivals", metavar="PYTHON", help="Interpreter that has the rivals.")
    parser.add_argument("--wrk", default=shutil.which("wrk"), metavar="FILE", help="Path of wrk.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

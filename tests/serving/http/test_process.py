"""`seqkeras serve` as a process: what it prints, how it ends, how a bundle is replaced."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqkeras.serving.__main__ import main
from seqkeras.serving.http.command import TOKEN
from seqkeras.serving.http.server import _tell
from tests.conftest import run_python
from tests.serving import toy_bundle
from tests.serving.http.served import as_process, ask, until
from tests.serving.npm_folder import npm_folder

GOOD = {"input": "up|bad"}


def test_the_first_line_names_a_request_that_works(folders):
    options = "--allow-host", "models.example"
    with as_process(folders["letters"], *options, env={TOKEN: "se-cret"}) as (process, line, port):
        found = re.fullmatch(r"serving toy \(Translate\) at (\S+); try: (curl .*)\n", line)
        assert found[1] == f"http://127.0.0.1:{port}"
        curl = shlex.split(found[2])
        assert curl[1:3] == ["-H", f"Authorization: Bearer ${TOKEN}"]
        assert curl[3] == f"http://127.0.0.1:{port}/v1/bundles/toy" and curl[4] == "-d"
        header = {"authorization": "Bearer se-cret"}
        status, answer = ask(port, "/v1/bundles/toy", curl[5].encode(), header)
        assert (status, answer["text"]) == (200, "cbe")
        for more, status in (
            ({"authorization": ""}, 401),
            ({"host": "models.example"}, 200),
            ({"host": "evil.example"}, 421),
        ):
            assert ask(port, "/v1/bundles/toy", GOOD, header | more)[0] == status
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and output == ""
    assert [line.split('"')[1] for line in errors.splitlines()] == 4 * ["POST /v1/bundles/toy"]


def test_sigterm_finishes_what_runs(folders):
    """A request of 1,000 inputs, of which 64 are answered then, is answered to its end."""
    found = []

    def answered(port):
        line = r'seqkeras_inputs_total{bundle="toy",outcome="answered"} (\d+)'
        count = re.search(line, ask(port, "/metrics")[1])
        return int(count[1]) if count else 0

    def read(port):
        content = {"inputs": 500 * ["up|bad", "down|egad"], "options": {"num_beams": 9}}
        found.append(ask(port, "/v1/bundles/toy", content))

    options = "--threads", 1, "--no-log", "--timeout", 60
    with as_process(folders["letters"], *options) as (process, _, port):
        reader = threading.Thread(target=read, args=(port,))
        reader.start()
        until(lambda: answered(port) >= 64)
        process.send_signal(signal.SIGTERM)
        reader.join(60)
        process.communicate(timeout=60)
    [(status, content)] = found
    assert status == 200 and len(content["answers"]) == 1000 and process.returncode == 0
    assert all("text" in answer for answer in content["answers"])


def test_a_replaced_bundle_is_taken_up_without_a_lost_request(tmp_path):
    folder = toy_bundle.write_bundle(tmp_path / "served")
    new = toy_bundle.write_bundle(
        tmp_path / "new", toy_bundle.ToyModel(seed=5), created="2027-01-01T00:00:00+00:00"
    )
    statuses, ended = [], threading.Event()

    def go_on(port):
        while not ended.is_set():
            statuses.append(ask(port, "/v1/bundles/toy", GOOD)[0])

    def created(port):
        return ask(port, "/v1/bundles/toy")[1]["created"]

    with as_process(folder, "--no-log", "--threads", 1) as (process, _, port):
        askers = [threading.Thread(target=go_on, args=(port,)) for _ in range(3)]
        for asker in askers:
            asker.start()
        before = created(port)
        os.rename(folder, tmp_path / ".served.replaced-1")
        os.rename(new, folder)
        until(lambda: created(port) != before)
        assert created(port) == "2027-01-01T00:00:00+00:00"
        (tmp_path / "refused").write_text("{}")
        os.replace(tmp_path / "refused", folder / "manifest.json")  # it changes nothing
        failed = 'seqkeras_loads_total{bundle="toy",outcome="failed"} 1'
        until(lambda: failed in ask(port, "/metrics")[1])
        shutil.rmtree(folder)
        assert ask(port, "/v1/bundles/toy", GOOD)[0] == 200
        ended.set()
        for asker in askers:
            asker.join()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert len(statuses) > 3 and set(statuses) == {200}
    first, second = errors.splitlines()
    assert first == "seqkeras-serving: toy: replaced; made 2027-01-01T00:00:00+00:00"
    assert second.startswith("seqkeras-serving: toy: stays as it was, for its replacement is refus")


def is_answered(port):
    try:
        return ask(port, "/v2/health/live")[0] == 200
    except OSError:
        return False


def test_processes_share_a_port_their_metrics_and_the_page(folders, tmp_path):
    options = "--processes", 2, "--no-log"
    page = ("--node-modules", npm_folder(tmp_path))
    with as_process(folders["letters"], *options, page=page) as (process, _, port):
        for _ in range(12):
            assert ask(port, "/v1/bundles/toy", GOOD)[1]["text"] == "cbe"
            assert ask(port, "/page.json")[1]["bundles"][0]["name"] == "toy"
        status, text = ask(port, "/metrics")
        assert 'seqkeras_inputs_total{bundle="toy",outcome="answered"} 12.0' in text
        assert ask(port, "/")[0] == 200 and ask(port, "/page.json")[1]["browser"]["missing"] == ""
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == ""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads what processes have open")
def test_connections_are_spread_over_processes_and_nobody_else_gets_the_port(folders, tmp_path):
    options = "--processes", 2, "--no-log"
    with (
        as_process(folders["letters"], *options, env={"TMPDIR": str(tmp_path)}) as (*_, port),
        contextlib.ExitStack() as opened,
    ):
        gauges = "seqkeras-metrics-*/gauge_livesum_*.db"
        until(lambda: len([*tmp_path.glob(gauges)]) == 2)
        pids = [path.stem.split("_")[-1] for path in tmp_path.glob(gauges)]
        until(lambda: count_listening(port) == 3)  # one that all share, and those of both
        before = [count_sockets(pid) for pid in pids]
        for _ in range(60):
            opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        until(lambda: sum(map(count_sockets, pids)) == sum(before) + 60)
        counts = [count_sockets(pid) - already for pid, already in zip(pids, before)]
        assert min(counts) > 6  # each is given a third, and takes of the last what it can
        with pytest.raises(AssertionError, match=f"127.0.0.1:{port} can not be bound"):
            opened.enter_context(as_process(folders["letters"], *options, "--port", port))


def count_listening(port):
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    found = (line.split() for line in lines)
    return sum(local.endswith(f":{port:04X}") and state == "0A" for _, local, _, state, *_ in found)


def count_sockets(pid):
    count = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(path).startswith("socket:")
    return count


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_processes_end_when_the_one_that_started_them_is_killed(folders):
    with as_process(folders["letters"], "--processes", 2, "--no-log") as (process, _, port):
        assert ask(port, "/v1/bundles/toy", GOOD)[0] == 200
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        until(lambda: not is_answered(port))
        process.communicate(timeout=60)  # its pipes are closed: all who had them have ended


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_what_waited_in_a_process_that_died_waits_no_more(folders, tmp_path):
    options = "--processes", 2, "--no-log"
    with as_process(folders["letters"], *options, env={"TMPDIR": str(tmp_path)}) as (_, _, port):
        gauges = "seqkeras-metrics-*/gauge_livesum_*.db"
        until(lambda: len([*tmp_path.glob(gauges)]) == 2)
        first, _ = tmp_path.glob(gauges)
        os.kill(int(first.stem.split("_")[-1]), signal.SIGKILL)
        until(lambda: not first.exists() and len([*tmp_path.glob(gauges)]) == 2)
        assert ask(port, "/v1/bundles/toy", GOOD)[0] == 200


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere"], "nowhere: there is no such folder; expected a bundle"),
        (["{toy}", "{toy}"], "the names of bundles must be distinct; received toy, toy. Write NAM"),
        (["a b={toy}"], "a name must be of letters, digits, '.', '_' and '-'; received 'a b'"),
        (["x={toy}", "--host", "no.such.host.invalid"], "can not be bound: "),
        (["{toy}", "--precision", "int3"], "precision must be one of the bundle's, float32; rece"),
        (["{toy}", "--token-file", "{toy}/nothing"], "nothing: No such file or directory"),
        (["{toy}", "--token-file", "{toy}/empty"], "a token must be of ASCII letters"),
        (["{toy}", "--port", "{port}"], " can not be bound: "),
        (["{changed}"], "encoder.onnx"),
        (["{changed}", "--processes", "2"], "encoder.onnx"),
    ],
)
def test_what_can_not_be_served_is_one_line(arguments, message, folders, port, tmp_path, capsys):
    toy, changed = (shutil.copytree(folders["letters"], tmp_path / name) for name in "tc")
    (toy / "empty").write_text(" \n")
    content = (changed / "onnx/encoder.onnx").read_bytes()
    (changed / "onnx/encoder.onnx").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    arguments = [text.format(toy=toy, changed=changed, port=port) for text in arguments]
    assert main(["serve", "--port", "0", *arguments]) == 1
    written = capsys.readouterr()
    assert message in written.err and written.err.count("\n") == 1 and written.out == ""
    assert written.err.startswith("seqkeras serve: ")


WRONG = [
    *("--port=70000", "--max-queue=0", "--timeout=0", "--idle=x"),
    *("--cors=page.example", "--cors=https://page.example/"),
    *("--allow-host=http://a", "--allow-host=a:1"),
]


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_option_is_refused(option, capsys):
    with pytest.raises(SystemExit) as exited:
        main(["serve", "bundle", option])
    assert exited.value.code == 2 and "expected a" in capsys.readouterr().err


def test_a_wrong_number_of_processes_names_auto(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "bundle", "--processes", "many"])
    assert "a whole number from 1, or auto; received 'many'; see" in capsys.readouterr().err


def test_help_is_there_at_once_and_without_the_packages():
    code = (
        "import sys\nfor name in ('starlette', 'uvicorn', 'numpy', 'onnxruntime'):\n"
        "    sys.modules[name] = None\n"
        "from seqkeras.serving.__main__ import main\nmain(sys.argv[1:])"
    )
    done = run_python("-c", code, "serve", "--help")
    assert done.returncode == 0 and "--max-queue" in done.stdout and done.stderr == ""
    done = run_python("-c", code.replace(", 'numpy', 'onnxruntime'", ""), "serve", "x")
    said = r"seqkeras serve: the package starlette is missing, .*: pip install -r (.*)\n"
    [file] = shlex.split(re.fullmatch(said, done.stderr)[1])
    assert "starlette" in Path(file).read_text(encoding="utf-8")


def test_the_request_of_an_input_that_is_too_long_to_be_pasted_describes_the_bundle(capsys):
    long = SimpleNamespace(pipeline="Forecast", examples=[[[0.5]] * 1000])
    _tell(["load"], [long], ("127.0.0.1", 8000), "")
    line = capsys.readouterr().out
    assert line.endswith("try: curl http://127.0.0.1:8000/v1/bundles/load\n")
    short = SimpleNamespace(pipeline="Forecast", examples=[[[0.5]]])
    _tell(["load"], [short], ("127.0.0.1", 8000), "")
    assert capsys.readouterr().out.endswith("/v1/bundles/load -d '{\"input\": [[0.5]]}'\n")

import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import types

import pytest

from seqkeras import serving
from seqkeras.serving.__main__ import main
from seqkeras.serving.manifest import read_manifest, write_manifest
from seqkeras.serving.printing import as_typed
from tests.conftest import CHECKOUT, others_long, run_python, start_python
from tests.serving.toy_bundle import write_bundle


@pytest.fixture
def run(command, shared_bundle):
    """`command` on the shared bundle, or on another."""
    return lambda name, *arguments, bundle=shared_bundle, **given: command(
        name, bundle, *arguments, **given
    )


def start(*arguments, **options):
    return start_python("-m", "serving", *arguments, **options)


def test_json_holds_alternatives_and_attention_on_request(run, pipeline):
    options = ["--num-beams", "3", "--n-best", "3", "--length-penalty", "0.5", "--attention"]
    content = json.loads(run("predict", *options, "up|bad")[1])
    answer = pipeline("up|bad", num_beams=3, n_best=3, length_penalty=0.5, attention=True)
    assert content["score"] == answer.score
    found, expected = (content, *content["alternatives"]), (answer, *answer.alternatives)
    for one, other in zip(found, expected, strict=True):
        assert one["text"] == other.text and len(one["attention"]) == len(other.text)
        assert one["attention"][0] == pytest.approx(other.attention[0], abs=1e-6)


def test_streamed_text_is_the_answer(run):
    assert run("predict", "up|bad", "down|cab", "--stream") == (0, "cbe\ndbc\n", "")
    assert run("predict", "--stream", stdin=b"up|bad\nup|a\n") == (0, "cbe\nb\n", "")
    status, output, error = run("predict", "up|bad", "--stream", "--num-beams", "2")
    assert (status, output) == (1, "")
    assert error == "seqkeras predict: Translate has no option --num-beams where it streams.\n"


def test_lines_end_with_a_newline_only_and_may_have_a_carriage_return(run):
    content = "up|bad\r\nup|a\u2028\x0c\x85b\r\n".encode()
    status, output, error = run("predict", "--json", stdin=content)
    assert (status, error) == (0, "")
    inputs = [json.loads(line)["input"] for line in output.split("\n")[:-1]]
    assert inputs == ["up|bad", "up|a\u2028\x0c\x85b"]
    assert run("predict") == (0, "", "")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "line, message",
    [
        (b"", "is empty; write something to answer."),
        (b"xx|a", "has an unknown direction 'xx'; known: down, up; write e.g. 'up|bad'."),
        (b"up|a\xffb", "must be UTF-8; received byte 0xff at position 4."),
        (b"up|" + 10**7 * b"a", "has more than 10,000,000 bytes, the most that a line may have; "),
        (b"up|" + 11 * b"a", "has 14 characters; the limit is 13. Nothing was truncated: "),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["--stream"]])
def test_a_bad_line_has_an_empty_one_in_its_place_and_a_report(
    run, line, message, terminal, arguments
):
    content = b"up|bad\nup|a\n" + line + b"\nup|cab\n"
    status, output, error = run("predict", *arguments, stdin=content, terminal=terminal)
    assert (status, output) == (1, "cbe\nb\n\ndbc\n")
    assert error.startswith(f"seqkeras predict: standard input, line 3: text {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--stream"]])
def test_a_text_over_the_limit_names_the_option_of_the_command(run, arguments):
    status, _, error = run("predict", *arguments, "up|aaaaaaaaaaa")
    assert status == 1
    assert error.endswith("Nothing was truncated: shorten it, or ask for --truncate.\n")
    assert run("predict", "--truncate", *arguments, "up|aaaaaaaaaaa")[0] == 0


def test_an_argument_that_names_a_file_is_no_text(run, pipeline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new ones").write_text("up|bad\n")
    status, output, error = run("predict", "new ones", "up|bad")
    told = "argument 1: new ones is a file, and the bundle reads texts; its lines are read from sta"
    assert status == 1 and told in error and "input: < 'new ones'." in error
    assert output.splitlines() == ["", pipeline("up|bad").text]
    for name in ("nosuch.csv", "up/bad.TXT", "a.parquet"):
        told = f"{name}: no such file; if it is a text, give it in a line of standard input.\n"
        assert run("predict", name) == (1, "", f"seqkeras predict: argument 1: {told}")
    for text in ("new ones", "nosuch.csv"):  # a line may be any text, and so may words and JSON
        _, _, error = run("predict", stdin=f"{text}\n")
        assert "standard input, line 1: text must begin with a direction" in error
    for text in (["a b.csv"], ['"a.csv"', "--json-input"]):
        assert "argument 1: text must begin with a direction" in run("predict", *text)[2]


def test_the_bundle_s_examples_are_answered_in_place_of_inputs(run, pipeline):
    expected = "".join(f"{pipeline(text).text}\n" for text in pipeline.manifest.examples)
    assert run("predict", "--examples") == (0, expected, "")
    assert run("predict", "--examples", "--stream") == (0, expected, "")
    told = "--examples stands in the place of inputs; leave one of both out."
    assert run("predict", "up|a", "--examples") == (1, "", f"seqkeras predict: {told}\n")


@pytest.mark.skipif(os.name == "nt", reason="arguments are bytes on POSIX only")
def test_an_argument_that_is_no_utf_8_is_refused(command, shared_bundle):
    message = "seqkeras predict: argument 1: text must be UTF-8; received 'up|\\udcff'.\n"
    assert command("predict", shared_bundle, os.fsdecode(b"up|\xff")) == (1, "", message)


@pytest.mark.parametrize(
    "package, command, typed",
    [
        ("seqkeras.training", "train", "seqkeras train"),
        ("seqkeras.serving", "", "seqkeras"),
        ("seqkeras_serving", "predict", "seqkeras-serving predict"),
        ("training", "train", "python -m training"),
        ("serving", "predict", "python -m serving predict"),
    ],
)
def test_a_command_is_named_as_it_is_typed(package, command, typed):
    assert as_typed(package, command) == typed


@pytest.mark.parametrize(
    "line, message",
    [
        ("", "the following arguments are required: command; see seqkeras --help"),
        ("train", "argument command: invalid choice: 'train' .*; see seqkeras --help"),
        ("predict", "the following arguments are required: BUNDLE; see .* predict --help"),
        ("bench b --seconds x", "argument --seconds: expected a number over 0, up to 3600; rec"),
        ("predict b --wrong", "unrecognized arguments: --wrong; write an input .* after --; see "),
        ("predict b --num-beams 0", "argument --num-beams: expected a whole number from 1; rec"),
        ("bench b --batch-sizes 1,x", "argument --batch-sizes: expected .*; received 'x'"),
        ("predict b --gaps few", "argument --gaps: invalid choice: 'few' .*refuse.*fill.*; see "),
        ("bench b --gaps few", "argument --gaps: invalid choice: 'few' .*refuse.*fill.*; see "),
        ("predict b --json --stream", "argument --stream: not allowed with argument --json; see"),
        ("inspect b c", "unrecognized arguments: c; see seqkeras inspect --help"),
        ("\x1b[2J\ud800", r"argument command: invalid choice: '\\x1b\[2J\\ud800' "),
    ],
)
def test_a_wrong_command_is_one_line_and_status_2(capsys, line, message):
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 2
    typed = "seqkeras( predict| bench| inspect)?"
    assert re.fullmatch(f"{typed}: {message}.*\n", capsys.readouterr().err)


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"seqkeras-serving {serving.__version__}\n"


def test_a_line_typed_in_a_terminal_is_answered_before_the_next(shared_bundle, capsys, monkeypatch):
    printed = []

    def typed():
        for line in (b"up|bad\n", b"up|a\n", b"up|c\n"):
            yield line
            printed.append(capsys.readouterr().out)
        yield b""

    readline = functools.partial(lambda given, size: next(given), typed())
    buffer = types.SimpleNamespace(readline=readline)
    terminal = types.SimpleNamespace(buffer=buffer, isatty=lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert main(["predict", str(shared_bundle)]) == 0
    assert printed == ["cbe\n", "b\n", "d\n"]


def test_a_reader_that_has_enough_ends_the_run_quietly(shared_bundle):
    process = start("predict", shared_bundle)
    process.stdout.close()
    process.stdout = None
    _, error = process.communicate(1000 * "up|bad\n")
    assert (process.returncode, error) == (141, "")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
def test_an_interrupt_ends_the_run_quietly(shared_bundle):
    def interruptible():  # which no process is that a shell runs in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = start("predict", shared_bundle, preexec_fn=interruptible)
    process.stdin.write(256 * "up|bad\n")
    process.stdin.flush()
    assert process.stdout.readline() == "cbe\n"  # it has started, and waits for more lines
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert (process.returncode, error) == (130, "")


@pytest.mark.skipif(os.name == "nt", reason="a shell of its own")
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("up|bad >&-", b"standard output is closed; open it, or name a file.\n"),
        pytest.param("<&-", b"standard input is closed; open it, or n", marks=pytest.mark.long),
    ],
)
def test_a_closed_stream_is_one_line(shared_bundle, inputs, message):
    argument, _, stream = inputs.rpartition(" ")
    line = [sys.executable, "-m", "serving", "predict", str(shared_bundle), argument]
    shell = ["sh", "-c", f"{shlex.join(filter(None, line))} {stream}"]
    done = subprocess.run(shell, cwd=CHECKOUT, capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"python -m serving predict: " + message)


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_one_line(shared_bundle):
    with open("/dev/full", "wb") as full:
        done = run_python("-m", "serving", "predict", shared_bundle, "up|bad", stdout=full)
    assert done.returncode == 1
    assert done.stderr == "python -m serving predict: output: No space left on device\n"


def test_bench_prints_a_table_and_says_what_it_measured(run, tmp_path):
    options = ["--batch-sizes", "1,3", "--repeats", "5", "--num-beams", "2", "--threads", "1"]
    status, output, error = run("bench", *options, "--json", str(tmp_path / "bench.json"))
    assert (status, error) == (0, "")
    header, *rows, last = output.splitlines()
    assert header.split() == "batch_size calls p50_ms p90_ms p99_ms texts_per_second".split()
    assert [row.split()[:2] for row in rows] == [["1", "5"], ["3", "5"]]
    assert len({len(line) for line in (header, *rows)}) == 1
    assert last.startswith(
        "measured: toy, float32, num_beams 2, 3 different inputs in turn, text in to text out, "
        "1 thread; onnxruntime "
    )
    content = json.loads((tmp_path / "bench.json").read_text())
    assert f"measured: {content['measured']}" == last
    for row in content["rows"]:
        assert 0 < row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"]
        assert row["texts_per_second"] > 0


def test_bench_takes_its_texts_from_a_file(run, tmp_path):
    (tmp_path / "texts").write_bytes(b"up|bad\r\nup|a\n")
    options = ["--input", str(tmp_path / "texts"), "--repeats", "1", "--batch-sizes", "1"]
    assert ", num_beams 1, 2 different inputs in turn" in run("bench", *options)[1]
    (tmp_path / "texts").write_bytes(b"up|bad\nbad\n")
    status, _, error = run("bench", *options)
    assert status == 1
    assert re.match(r"seqkeras bench: .*texts, line 2: text must begin with a direction", error)


def test_bench_keeps_the_old_figures_until_it_has_new_ones(run, tmp_path, monkeypatch):
    (tmp_path / "bench.json").write_text("old")

    def interrupted(*_, **__):
        assert (tmp_path / "bench.json").read_text() == "old"
        raise KeyboardInterrupt

    monkeypatch.setattr("seqkeras.serving.bench.measure", interrupted)
    assert run("bench", "--json", str(tmp_path / "bench.json"))[0] == 130
    assert (tmp_path / "bench.json").read_text() == "old"


def test_bench_measures_for_the_seconds_given(run):
    status, output, _ = run("bench", "--batch-sizes", "2", "--seconds", "0.05")
    assert status == 0
    assert int(output.splitlines()[1].split()[1]) > 1


def test_what_the_manifest_leaves_open_is_left_out_and_not_measured(run, tmp_path):
    empty = {"text_prefix": None, "examples": (), "scores": {}, "saved_models": {}}
    bundle = write_bundle(tmp_path / "toy", **empty)
    message = "there is nothing to answer; name a file of texts with --input."
    assert run("bench", bundle=bundle) == (1, "", f"seqkeras bench: {message}\n")
    status, output, _ = run("inspect", bundle=bundle)
    assert status == 0
    assert not re.search("^(input|example|scores|saved_model)", output, re.MULTILINE)


@pytest.mark.parametrize("option", ["--input", "--json"])
def test_a_missing_file_is_one_line_before_anything_is_measured(run, tmp_path, option):
    file = tmp_path / "none/x"
    message = f"seqkeras bench: {file}: No such file or directory\n"
    assert run("bench", option, str(file)) == (1, "", message)


def test_inspect_says_what_the_bundle_is_and_verifies_it(run):
    status, output, error = run("inspect")
    assert (status, error) == (0, "")
    for line in (
        "name              toy",
        "task              letters, by the pipeline Translate",
        "input             a direction, '|', then the text; known: down up",
        "limits            source 13 tokens, target 7",
        "decoding          num_beams 1, length_penalty 0",
        "                  takes token_ids int64 (batch, source_length)",
        "scores            exact_match 0.9875",
        "                  by_direction.down 0.975",
        "parity            max_difference 1.5e-06",
        "verified: the sha256 of all 5 files is the manifest's.",
    ):
        assert line in output.splitlines()


def test_inspect_refuses_a_bundle_with_any_file_altered(run, bundle):
    (bundle / "saved_model/1/saved_model.pb").write_bytes(b"Not opened by serving")
    status, output, error = run("inspect", bundle=bundle)
    assert (status, output) == (1, "")
    assert re.fullmatch("seqkeras inspect: .*saved_model.pb does not have the .*again.\n", error)


def test_names_do_not_steer_a_terminal(run, bundle):
    def escaped_everywhere(bundle, *arguments):
        status, output, error = run(*arguments, bundle=bundle)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", output + error)
        return status, output, error

    manifest = read_manifest(bundle)
    steering, shown = "\x1b[2J\x9b2J\r\x07", r"toy\x1b[2J\x9b2J"
    object.__setattr__(manifest, "name", f"toy{steering}")
    object.__setattr__(manifest, "task", "\ud800")
    write_manifest(bundle, manifest)
    assert shown in escaped_everywhere(bundle, "inspect")[1]
    content = json.loads(escaped_everywhere(bundle, "inspect", "--json")[1])
    assert (content["name"], content["task"]) == (f"toy{steering}", "\ud800")
    options = ["--repeats", "1", "--batch-sizes", "1"]
    assert shown in escaped_everywhere(bundle, "bench", *options)[1]
    status, _, error = escaped_everywhere(bundle, "predict", f"up|a{steering}", "left|\x1b")
    assert (status, error.count("\n")) == (1, 1)
    status, _, error = escaped_everywhere(f"none{steering}\n", "inspect")
    assert (status, error.count("\n")) == (1, 1)


def test_too_little_memory_is_one_line(run, monkeypatch):
    def short(*_, **__):
        raise MemoryError

    monkeypatch.setattr("seqkeras.serving.pipelines.translate.pad", short)
    message = "there is not enough memory; ask for a smaller --token-budget, or for less at once."
    assert run("predict", "up|a")[::2] == (1, f"seqkeras predict: {message}\n")


@pytest.mark.parametrize("arguments", others_long([["predict", "", "up|bad"], ["bench", "--help"]]))
def test_an_ascii_output_is_none_to_us(shared_bundle, arguments):
    arguments = [each or shared_bundle for each in arguments]
    done = run_python("-m", "serving", *arguments, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "") and done.stdout

"""The dates task: what it leaves, how it goes on after a stop, what it refuses."""

import io
import json
import os
import subprocess
import sys
import time

import pytest

from seqkeras import serving
from seqkeras.data import dates
from seqkeras.data.dates import ANSWERS
from seqkeras.serving.text import CharacterTable
from seqkeras.training.__main__ import main
from seqkeras.training.run import open_run
from seqkeras.training.tasks.dates import DatesOptions
from tests.conftest import CHECKOUT, run_python
from tests.training.commands import outcome, printed, refusal, refused_files, refused_options

# Small enough to train in seconds; what it learns does not matter.
TINY = (
    "--locales de --examples 640 --passes 2 --batch-size 32 --units 5 --decoder-units 7 "
    "--embedding-dim 3 --test-examples 20 --steps-per-save 10 --dropout 0.1"
).split()


def test_a_finished_run_holds_what_export_needs_and_no_checkpoint(dates_run):
    expected = """attention.png curves.png history.csv model.keras options.json run.json samples.txt
        scores.json tensorboard tokenizer validation.json"""
    assert {path.name for path in dates_run.iterdir()} == {*expected.split()}
    assert len(CharacterTable.from_file(dates_run / "tokenizer" / "target.json")) == 4 + 11 + 3
    assert json.loads((dates_run / "options.json").read_text())["units"] == 32
    assert json.loads((dates_run / "run.json").read_text())["decoding"]["regex"] == ANSWERS


def test_scores_are_given_over_all_by_locale_and_by_noise(dates_run):
    scores = json.loads((dates_run / "scores.json").read_text())
    assert set(scores["by_locale"]) == {"de", "ja"}
    mean = sum(right["clean"] for right in scores["by_locale"].values()) / 2
    assert scores["clean"] == pytest.approx(mean)
    assert scores["by_noise"] and scores["by_writing"]
    assert set(scores["aurc"]) == {"clean", "noisy", "in text"}
    assert all(0 <= area <= 1 for area in scores["aurc"].values())


def test_a_run_and_its_bundle_are_scored_on_a_file_of_dates(dates_run, dates_bundle, tmp_path):
    file = tmp_path / "dates.tsv"
    texts = [example.text for example in dates.sample("test", 6, 0, locales=("de", "ja"))]
    answers = serving.load(dates_bundle)(texts)
    rows = [f"{text}\t{answer.text or 'none'}" for text, answer in zip(texts, answers)]
    rows[0] = f"{texts[0]}\t2049-01-01"  # which is wrong
    file.write_text("\n".join(["text\tdate", *rows]) + "\n", encoding="utf-8")
    for subject in (dates_run, dates_bundle):
        lines = printed("evaluate", subject, "--data", file, "--out", tmp_path / "scores.json")
        scores = json.loads((tmp_path / "scores.json").read_text())
        assert scores["given"] == pytest.approx(5 / 6) and scores["examples"] == 6
        assert set(scores["by_locale"]) == {"de", "ja"} and set(scores["aurc"]) == {"given"}
        assert lines[-1] == f"{subject} on dates.tsv: right are 83.33% given"
    for row, message in (
        ("3.5.2014\t2014-05-03", "line 2: 'text' must be a locale, '|' and the date as it is wr"),
        ("de|3.5.2014\t3.5.2014", "line 2: 'date' must be a day from 1950-01-01 to 2049-12-31"),
    ):
        file.write_text(f"text\tdate\n{row}\n")
        given = ["evaluate", dates_run, "--data", file]
        assert message in refusal(*given, out=tmp_path / "scores.json")


@pytest.mark.long
def test_a_killed_run_goes_on_and_ends_with_the_same_scores(tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    assert main(["dates", "--out", str(whole), *TINY]) == 0
    command = [sys.executable, "-m", "training", "dates", "--out", str(folder), *TINY]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as process:
        while not (folder / "checkpoint.keras").exists() and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert (folder / "checkpoint.keras").exists()
    assert not (folder / "run.json").exists()
    finished = run_python("-m", "training", "dates", "--out", folder, *TINY)
    assert "going on from step" in finished.stdout
    assert (folder / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()


test_a_wrong_option_gets_one_line = refused_options(
    "dates",
    ("--units 0", "'--units': 0 is not in the range x>=1"),
    ("--cell elman", "'elman' is not one of 'gru', 'lstm'"),
    ("--locales de,xx", "unknown locale 'xx'; known: en_US"),
    ("--seed 99999999999", "99999999999 is not in the range"),
    ("--learning-rate nan", "nan is not in the range 0<x<inf"),
    ("--locales de,de", "needs one locale or more, each once"),
    ("--noisy nan", "nan is not in the range 0<=x<=1"),
    ("--examples 9", "--examples must be at least --batch-size, 128; received 9."),
    ("--unitz 3", "No such option '--unitz'"),
    ("--config nothing.json", "nothing.json' does not exist"),
)
test_a_wrong_config_gets_one_line = refused_files(
    "dates --config",
    "config.json",
    ('{"locales": 5}', "", "config.json: locales must be a list; received 5"),
    ('{"batch_size": null}', "", "batch_size must be a whole number; received null."),
    ('{"batch_size": 16.9}', "", "config.json: batch_size must be a whole number; received"),
    ('{"batch_size": true}', "", "batch_size must be a whole number; received true."),
    ('{"dropout": "0.1"}', "", 'config.json: dropout must be a number; received "0.1".'),
    ("[" * 1000 + "]" * 1000, "", "JSON file: it is nested over 100 levels deep"),
    ("{", "", "config.json is not a JSON file"),
    ("[1]", "", "config.json must hold a JSON object"),
    ('{"unitz": 3}', "", "unitz is unknown (did you mean units?)"),
    status=2,
)


RUN = {"options.json": '{"task": "dates"}'}
NO_OPTIONS = "options.json: not the options of a run"
STRANGER = "which no run writes, so nothing is removed"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"letters.txt": "mine"}, "not empty, and not a run folder"),
        ({"options.json": "{"}, NO_OPTIONS),
        ({"options.json": '{"editor": "dark"}', "scores.json": "mine"}, f"{NO_OPTIONS}: task is m"),
        (RUN | {"thesis.txt": "mine"}, "holds 'thesis.txt', which no run writes"),
        (RUN | {"tokenizer/notes.txt": "mine"}, STRANGER),
        (RUN | {".env": "mine"}, STRANGER),
        (RUN | {".model.keras": "mine"}, STRANGER),
        (RUN | {"tokenizer/deep/source.json": "mine"}, STRANGER),
    ],
)
def test_what_is_no_run_is_refused_and_never_removed(files, message, tmp_path):
    run = tmp_path / "run"
    for name, content in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(content)
    assert message in refusal("dates", "--overwrite", out=run)
    assert {name: (run / name).read_text() for name in files} == files


@pytest.mark.long
def test_a_model_that_memory_has_no_room_for_gets_one_line(tmp_path):
    status, _, [line] = outcome("dates", *TINY, "--units", "2000000000", "--out", tmp_path / "run")
    assert status == 1
    assert line == "seqkeras train: memory is short; choose a smaller --batch-size or model"


def test_a_name_is_printed_on_any_terminal_and_is_no_command_to_it(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "lauf ü[/red]\x1b[31m"
    open_run(folder, "dates", DatesOptions(), False)
    (folder / "run.json").write_text("{}")
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["dates", "--out", str(folder)]) == 0
    output.flush()
    assert b"lauf \\xfc[/red]\\x1b[31m: finished already" in output.buffer.getvalue()
    assert capsys.readouterr().err == ""


def test_sigterm_while_tensorflow_loads_gets_one_line(tmp_path):
    command = [sys.executable, "-m", "training", "dates", "--out", str(tmp_path / "run"), *TINY]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(1.5)
        process.terminate()
        error = process.stderr.read()
    assert process.returncode in (130, -15)  # -15: before Python had begun
    assert "Traceback" not in error


STOPPED = """
import signal
import sys

from seqkeras.training import __main__ as command

command.keep_freed_memory = lambda: exec("signal.raise_signal(signal.SIGTERM)")
sys.exit(command.main(["dates", "--out", "run"]))
"""


def test_sigterm_in_a_text_that_a_library_executes_gets_the_same_exit_status(tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{CHECKOUT}"}
    finished = run_python("-m", "stopped", cwd=tmp_path, env=path)  # not FILE, which Python forgets
    assert (finished.returncode, finished.stderr.count("\n")) == (130, 1)


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "run"
    goes_on = "; the same command, without --overwrite, goes on from the last checkpoint\n"
    again = " before a checkpoint was made; the same command begins again\n"

    def told(*options, writes=None):
        def interrupted(plan):
            plan.begin()
            if writes:
                (folder / writes).touch()
            raise KeyboardInterrupt

        monkeypatch.setattr("seqkeras.training.train.fit", interrupted)
        assert main(["dates", "--out", str(folder), *TINY, *options]) == 130
        return capsys.readouterr().err

    assert told() == f"seqkeras train: stopped{again}"
    assert told(writes="checkpoint.keras") == f"seqkeras train: stopped{goes_on}"
    assert told() == f"seqkeras train: stopped{goes_on}"
    assert told("--overwrite") == f"seqkeras train: stopped{again}"
    assert told("--overwrite", writes="checkpoint.keras") == f"seqkeras train: stopped{goes_on}"
    assert told(writes="run.json") == "seqkeras train: stopped; the run is finished\n"


def test_an_unknown_task_gets_one_line():
    status, _, [line] = outcome("date")
    assert status == 2 and "No such command 'date'" in line

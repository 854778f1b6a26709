"""The dates task: what it leaves, how it goes on after a stop, what it refuses."""

import io
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from seqkeras.data.dates import ANSWERS
from seqkeras.serving.text import CharacterTable
from seqkeras.training.__main__ import main
from seqkeras.training.run import open_run
from seqkeras.training.tasks.dates import DatesOptions
from tests.conftest import CHECKOUT, SMALL, run_python

# Small enough to train in seconds; what it learns does not matter.
TINY = (
    "--locales de --examples 640 --passes 2 --batch-size 32 --units 5 --decoder-units 7 "
    "--embedding-dim 3 --test-examples 20 --steps-per-save 10 --dropout 0.1"
).split()


@pytest.mark.long
def test_a_small_model_learns_dates_it_has_not_seen(tmp_path):
    options = [*SMALL, "--examples", "8000", "--passes", "3", "--steps-per-save", "125"]
    finished = run_python("-m", "training", "dates", "--out", tmp_path / "run", *options)
    assert finished.returncode == 0, finished.stderr
    scores = json.loads((tmp_path / "run/scores.json").read_text())
    assert scores["clean"] >= 0.9
    assert scores["noisy"] >= 0.75
    assert scores["in text"] > 0


def test_a_finished_run_holds_what_export_needs_and_no_checkpoint(dates_run):
    names = {path.name for path in dates_run.iterdir()}
    assert names == {
        "attention.png",
        "curves.png",
        "history.csv",
        "model.keras",
        "options.json",
        "run.json",
        "samples.txt",
        "scores.json",
        "tensorboard",
        "tokenizer",
        "validation.json",
    }
    assert len(CharacterTable.from_file(dates_run / "tokenizer" / "target.json")) == 4 + 11 + 3
    assert json.loads((dates_run / "options.json").read_text())["units"] == 32


def test_scores_are_given_over_all_by_locale_and_by_noise(dates_run):
    scores = json.loads((dates_run / "scores.json").read_text())
    assert set(scores["by_locale"]) == {"de", "ja"}
    mean = sum(right["clean"] for right in scores["by_locale"].values()) / 2
    assert scores["clean"] == pytest.approx(mean)
    assert scores["by_noise"] and scores["by_writing"]
    assert set(scores["aurc"]) == {"clean", "noisy", "in text"}
    assert all(0 <= area <= 1 for area in scores["aurc"].values())


def test_every_answer_is_a_day_or_none(dates_run):
    record = json.loads((dates_run / "run.json").read_text())
    assert record["decoding"]["regex"] == ANSWERS


def test_a_finished_run_says_so_and_is_left_alone(dates_run, capsys):
    before = (dates_run / "model.keras").stat().st_mtime_ns
    assert main(["dates", "--out", str(dates_run), *SMALL]) == 0
    assert "finished already" in capsys.readouterr().out
    assert (dates_run / "model.keras").stat().st_mtime_ns == before


def test_other_options_are_refused_on_the_same_folder(dates_run, capsys):
    assert main(["dates", "--out", str(dates_run), *SMALL, "--units", "33"]) == 1
    message = capsys.readouterr().err
    assert "other options: units is 32 there and 33 here" in message
    assert "--overwrite" in message
    assert message.count("\n") == 1


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


@pytest.mark.long
def test_overwrite_replaces_a_run(dates_run, tmp_path):
    folder = shutil.copytree(dates_run, tmp_path / "again")
    changed = [*TINY, "--seed", "1", "--overwrite"]
    assert main(["dates", "--out", str(folder), *changed]) == 0
    assert json.loads((folder / "options.json").read_text())["seed"] == 1


def test_a_config_file_sets_options_and_the_command_line_goes_before_it(tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"units": 33, "decoder_units": 34, "locales": ["de"]}))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps({"task": "dates"}))
    arguments = ["--config", str(config), "--decoder-units", "35"]
    assert main(["dates", "--out", str(folder), *arguments]) == 1
    message = capsys.readouterr().err
    assert "units is 64 there and 33 here" in message
    assert "decoder_units is 64 there and 35 here" in message
    assert "there and ['de'] here" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--units", "0"], "'--units': 0 is not in the range x>=1"),
        (["--cell", "elman"], "'elman' is not one of 'gru', 'lstm'"),
        (["--locales", "de,xx"], "unknown locale 'xx'; known: en_US"),
        (["--seed", "99999999999"], "99999999999 is not in the range"),
        (["--learning-rate", "nan"], "nan is not in the range 0<x<inf"),
        (["--locales", "de,de"], "needs one locale or more, each once"),
        (["--noisy", "nan"], "nan is not in the range 0<=x<=1"),
        (["--config", "{tmp}/locales.json"], "locales.json: locales must be a list; received 5"),
        (["--config", "{tmp}/null.json"], "batch_size must be a whole number; received null."),
        (
            ["--config", "{tmp}/half.json"],
            "half.json: batch_size must be a whole number; received",
        ),
        (
            ["--config", "{tmp}/true.json"],
            "batch_size must be a whole number; received true.",
        ),
        (
            ["--config", "{tmp}/text.json"],
            'text.json: dropout must be a number; received "0.1".',
        ),
        (
            ["--config", "{tmp}/deep.json"],
            "JSON file: it is nested over 100 levels deep",
        ),
        (["--examples", "9"], "--examples must be at least --batch-size, 128; received 9."),
        (["--unitz", "3"], "No such option '--unitz'"),
        (["--config", "{tmp}/nothing.json"], "nothing.json' does not exist"),
        (["--config", "{tmp}/broken.json"], "broken.json is not a JSON file"),
        (["--config", "{tmp}/list.json"], "list.json must hold a JSON object"),
        (["--config", "{tmp}/unknown.json"], "unitz is unknown (did you mean units?)"),
    ],
)
def test_a_wrong_option_gets_one_line(arguments, message, tmp_path, capsys):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "unknown.json").write_text('{"unitz": 3}')
    (tmp_path / "locales.json").write_text('{"locales": 5}')
    (tmp_path / "null.json").write_text('{"batch_size": null}')
    (tmp_path / "half.json").write_text('{"batch_size": 16.9}')
    (tmp_path / "true.json").write_text('{"batch_size": true}')
    (tmp_path / "text.json").write_text('{"dropout": "0.1"}')
    (tmp_path / "deep.json").write_text("[" * 1000 + "]" * 1000)
    arguments = [each.format(tmp=tmp_path) for each in arguments]
    folder = tmp_path / "run"
    assert main(["dates", "--out", str(folder), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("training: ") and error.count("\n") == 1
    assert not folder.exists() and not list(tmp_path.glob(".run*"))


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    (tmp_path / "letters.txt").write_text("mine")
    assert main(["dates", "--out", str(tmp_path), "--overwrite"]) == 1
    assert "not empty, and not a run folder" in capsys.readouterr().err
    assert (tmp_path / "letters.txt").read_text() == "mine"


def test_options_that_can_not_be_read_are_refused(tmp_path, capsys):
    (tmp_path / "options.json").write_text("{")
    assert main(["dates", "--out", str(tmp_path)]) == 1
    assert "options.json: not the options of a run" in capsys.readouterr().err


def test_a_stranger_in_the_folder_is_never_removed(tmp_path, capsys):
    (tmp_path / "options.json").write_text("{}")
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(["dates", "--out", str(tmp_path), "--overwrite"]) == 1
    assert "holds 'thesis.txt', which no run writes" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "options.json").exists()


def test_no_stranger_in_the_tokenizers_folder_or_hidden_is_removed(tmp_path, capsys):
    (tmp_path / "options.json").write_text('{"task": "dates"}')
    (tmp_path / "tokenizer").mkdir()
    for name in ("tokenizer/notes.txt", ".env", ".model.keras", "tokenizer/deep/source.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
        assert main(["dates", "--out", str(tmp_path), "--overwrite"]) == 1
        assert "which no run writes, so nothing is removed" in capsys.readouterr().err
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()


def test_options_that_no_run_wrote_make_no_run(tmp_path, capsys):
    (tmp_path / "options.json").write_text('{"editor": "dark"}')
    (tmp_path / "scores.json").write_text("mine")
    assert main(["dates", "--out", str(tmp_path), "--overwrite"]) == 1
    assert "options.json: not the options of a run: task is missing" in capsys.readouterr().err
    assert (tmp_path / "scores.json").read_text() == "mine"


def test_a_damaged_checkpoint_is_refused(tmp_path, capsys):
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqkeras.training.fit.Reseed", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(["dates", "--out", str(folder), *TINY])
    (folder / "checkpoint.keras").write_bytes(b"PK")
    assert main(["dates", "--out", str(folder), *TINY]) == 1
    error = capsys.readouterr().err
    assert "checkpoint.keras: damaged" in error and "--overwrite" in error
    assert error.count("\n") == 1


def test_a_model_that_memory_has_no_room_for_gets_one_line(tmp_path, capsys):
    options = [*TINY, "--units", "2000000000"]
    assert main(["dates", "--out", str(tmp_path / "run"), *options]) == 1
    message = "training: memory is short; choose a smaller --batch-size or model\n"
    assert capsys.readouterr().err == message


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


def test_the_options_of_a_run_are_a_config_file(dates_run, tmp_path, capsys):
    config = str(dates_run / "options.json")
    assert main(["dates", "--out", str(dates_run), "--config", config]) == 0
    assert "finished already" in capsys.readouterr().out


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

command.import_keras = lambda: exec("signal.raise_signal(signal.SIGTERM)")
sys.exit(command.main(["dates", "--out", "run"]))
"""


def test_sigterm_in_a_text_that_a_library_executes_gets_the_same_exit_status(tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "stopped",
        ],  # Python forgets it after `python FILE`
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{CHECKOUT}"},
        capture_output=True,
        text=True,
    )
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

    assert told() == f"training: stopped{again}"
    assert told(writes="checkpoint.keras") == f"training: stopped{goes_on}"
    assert told() == f"training: stopped{goes_on}"
    assert told("--overwrite") == f"training: stopped{again}"
    assert told("--overwrite", writes="checkpoint.keras") == f"training: stopped{goes_on}"
    assert told(writes="run.json") == "training: stopped; the run is finished\n"


def test_an_unknown_task_gets_one_line(capsys):
    assert main(["date"]) == 2
    error = capsys.readouterr().err
    assert "No such command 'date'" in error and error.count("\n") == 1

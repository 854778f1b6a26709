"""What is wrong with a command or a run is said in one line, before anything is made."""

import io
import re
import shutil
import sys
from types import SimpleNamespace

import pytest

import seqkeras.export.run
from seqkeras.export import bundle
from seqkeras.export.__main__ import main
from seqkeras.folders import written_aside
from seqkeras.runs import RunError
from tests.zoo import classify


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "classify"
    classify(folder)
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "int3"], "precision must be one of int8, .*; received 'int3'."),
        (["--precision", "int8,"], None),
        (["--precision", "int4"], "int4 wins in decoder steps only, .* has none; choose int8."),
        (["--precision", "int8", "--portable"], "int8: .* leave out --portable, or --precision."),
        (["--tolerance", "nan"], "--tolerance must be a number from 0 on; received nan."),
        (["--tolerance", "-1"], "--tolerance must be a number from 0 on; received -1."),
        (["--agreement", "99"], "--agreement must be a share from 0 to 1; received 99."),
        (
            ["--log-prob-tolerance", "inf"],
            "--log-prob-tolerance must be a number from 0 on; received inf.",
        ),
        (["--import", "no_such_module"], "--import no_such_module: ModuleNotFound.* FILE for .*"),
        (["--generate-in-graph"], "Classify generates nothing; leave out --generate-in-graph."),
        (["--sampling"], "Classify generates nothing; leave out --n-best and --sampling."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_can_not_be_are_refused(run, tmp_path, options, message, capsys, monkeypatch):
    made = []
    stages = [bundle.check, lambda making: made.append(making) or 1 / 0]
    monkeypatch.setattr(bundle, "STAGES", stages)
    if message is None:  # a comma too many is none
        with pytest.raises(ZeroDivisionError):
            main([str(run), str(tmp_path / "bundle"), *options])
        return
    assert main([str(run), str(tmp_path / "bundle"), *options]) == 1
    assert re.fullmatch(f"seqkeras export: (quantize: )?{message}\n", capsys.readouterr().err)
    assert not made and not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: RUN, BUNDLE"),
        (["run"], "the following arguments are required: BUNDLE"),
        (["run", "bundle", "--wrong"], "unrecognized arguments: --wrong"),
        (["run", "bundle", "--tolerance", "x"], "argument --tolerance: invalid float value: 'x'"),
    ],
)
def test_a_wrong_command_is_one_line_and_status_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"seqkeras export: {message}; see seqkeras export --help\n"


def test_folders_that_can_not_be_are_refused_before_tensorflow_is_loaded(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("seqkeras.export.__main__.import_tensorflow", lambda: 1 / 0)
    (tmp_path / "other").mkdir()
    for run, made, message in (
        ("none", "bundle", "no such run folder"),
        ("other", "bundle", "no run folder, run.json is missing"),
        ("none", "other", "exists, and is no bundle"),
    ):
        assert main([str(tmp_path / run), str(tmp_path / made)]) == 1
        assert message in capsys.readouterr().err


def test_a_bundle_is_made_where_the_terminal_has_ascii_alone(run, tmp_path, monkeypatch):
    made = SimpleNamespace(
        files={}, precisions={}, parity={"onnx_difference": 1e-6, "examples": 3}, examples=["Grüße"]
    )
    monkeypatch.setattr(bundle, "export", lambda *args, **options: made)
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert main([str(run), str(tmp_path / "bündel\x1b[31m")]) == 0
    output.flush()
    lines = output.buffer.getvalue().decode("ascii").splitlines()
    assert lines[0].startswith(f"{tmp_path}/b\\xfcndel\\x1b[31m: made in ")
    assert lines[1].startswith("next: ") and "Gr\\xfc\\xdfe" in lines[1]


@pytest.mark.parametrize("name", ["run.json", "validation.json", "scores.json"])
def test_json_that_is_a_thousand_deep_is_refused(name, run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "run")
    deep = "[" * 1000 + "]" * 1000
    (tmp_path / "run" / name).write_text('{"task": ' + deep + "}")
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    assert "is nested over 100 levels deep" in error and error.count("\n") == 1


def test_a_run_that_is_replaced_while_it_is_read_is_refused(run, tmp_path, monkeypatch):
    shutil.copytree(run, tmp_path / "run")
    load = seqkeras.export.run._load_model

    def load_slowly(*arguments):
        record = tmp_path / "run" / "run.json"
        shutil.copy(record, tmp_path / "new.json")
        (tmp_path / "new.json").replace(record)
        return load(*arguments)

    monkeypatch.setattr(seqkeras.export.run, "_load_model", load_slowly)
    with pytest.raises(RunError, match="run: was replaced while it was read. Export it when tra"):
        seqkeras.export.run.read_run(tmp_path / "run")


def test_an_interrupt_at_the_last_moment_says_that_the_bundle_is_made(
    run, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "bundle"

    def interrupted(*arguments, **options):
        with written_aside(folder, lambda: None) as aside:
            (aside / "text").write_text("whole")
            if folder.exists():
                monkeypatch.setattr(shutil, "rmtree", interrupt)
            else:
                monkeypatch.setattr(type(folder), "rename", rename_then_interrupt)

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    rename = type(folder).rename

    def rename_then_interrupt(path, target):
        rename(path, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle, "export", interrupted)
    monkeypatch.setattr("seqkeras.export.__main__.require_free", lambda *arguments: None)
    for _ in ("new", "replaced"):
        assert main([str(run), str(folder)]) == 130
        error = capsys.readouterr().err
        assert error == f"seqkeras export: stopped; {folder} was made, whole and verified\n"
        assert (folder / "text").read_text() == "whole"
        monkeypatch.setattr(type(folder), "rename", rename)

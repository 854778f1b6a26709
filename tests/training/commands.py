"""`seqkeras train` in this process: what it prints, the scores that it leaves, what it refuses."""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest

from seqkeras.export.bundle import ExportOptions, export
from seqkeras.runs import RunFiles
from seqkeras.training.__main__ import main
from seqkeras.training.answering import answerer
from tests.training.stops import stopped_behind_a_checkpoint


def outcome(*arguments):
    """Return the exit status of a command, and the lines of its output and of its errors."""
    out, errors = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main([*map(str, arguments)])
    return status, *(stream.buffer.getvalue().decode().splitlines() for stream in (out, errors))


def printed(*arguments):
    """Return the lines that a command prints, which must end well."""
    status, lines, errors = outcome(*arguments)
    assert status == 0, errors
    return lines


def refusal(*arguments, out, status=1):
    """Return the line by which a command is refused; beside `out` all stays as it was."""
    before = {*out.parent.iterdir()}
    found, _, errors = outcome(*arguments, "--out", out)
    assert found == status, errors
    [line] = errors
    records = Path(f"{out}.records")  # of bert-pretraining, for the next try
    assert line.startswith("seqkeras train: ") and {*out.parent.iterdir()} - {records} == before
    return line


class Fixtures:
    """The values of fixtures, by their names."""

    def __init__(self, request):
        self.request = request

    def __getitem__(self, name):
        return self.request.getfixturevalue(name)


def assert_refused(request, given, message, status):
    """A command is refused by a line that has a message, in which three dots stand for anything.

    In both {NAME} is the value of the fixture NAME.
    """
    fixtures = Fixtures(request)
    line = refusal(
        *given.format_map(fixtures).split(), out=fixtures["tmp_path"] / "run", status=status
    )
    parts = message.format_map(fixtures).split("...")
    assert re.search(".*".join(map(re.escape, parts)), line), line


def refused_options(given, *table, status=2):
    """Return a test: options of a command are refused by a line that has a message.

    Args:
        given: the task, its file, and the options of each row.
        table: pairs of further options and a message, as `assert_refused` takes them.
        status: the exit status of each row.
    """

    @pytest.mark.parametrize("more, message", table, ids=[row[-1] for row in table])
    def refused(more, message, request):
        assert_refused(request, f"{given} {more}", message, status)

    return refused


def refused_files(task, name, *table, options="", beside=None, status=1):
    """Return a test: a file of each content is refused by a line that has a message.

    Args:
        table: tuples of a content (text or bytes), options and a message; the options and the
            message are as `assert_refused` takes them, and {tmp_path} is the folder of the file.
        options: of each row.
        beside: a dictionary, name -> content of another file of the folder.
        status: the exit status of each row.
    """

    @pytest.mark.parametrize("content, more, message", table, ids=[row[-1] for row in table])
    def refused(content, more, message, request, tmp_path):
        files = {name: content, **(beside or {})}
        for path, text in files.items():
            (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        given = f"{task} {tmp_path / name} {options} {more}"
        assert_refused(request, given, message, status)

    return refused


def scores_of(run):
    """Return the scores in a folder."""
    return json.loads((Path(run) / "scores.json").read_text(encoding="utf-8"))


def own_scores_of(run):
    """Return the scores in a folder without those of plain methods, and what calibration brings."""
    others = ("baselines", "calibration")
    return {name: score for name, score in scores_of(run).items() if name not in others}


def evaluated(subject, data, *options):
    """Return the scores of a run or a bundle on a file, without the calibration of its answers'
    scores."""
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", f"{folder}/scores.json"]
        printed("evaluate", subject, "--data", data, *options, *out)
        return own_scores_of(folder)


def exported(folder, **options):
    """Return the bundle of the run in a folder, made once, beside it; it has ONNX graphs alone."""
    bundle = folder / "bundle"
    if not bundle.exists():
        export(folder / "run", bundle, options=ExportOptions(saved_models=False, **options))
    return bundle


def answers_of_run(run, inputs):
    """Return the answers of the model of a run, by its pipeline."""
    model = keras.models.load_model(run / "model.keras", compile=False)
    return answerer(RunFiles.read(run))(model, inputs, None)


def scores_of_both(folder, data, *options):
    """Return the scores that the run and the bundle in a folder have on a file, which are equal."""
    scores = evaluated(folder / "run", data, *options)
    assert evaluated(folder / "bundle", data, *options) == scores
    return scores


def assert_goes_on(folder, *command, count=1):
    """A training that is stopped behind a checkpoint ends as one that is not."""
    with stopped_behind_a_checkpoint(count):
        printed(*command, "--out", folder / "stopped")
    for name in ("stopped", "whole"):
        printed(*command, "--out", folder / name)
    models = (
        keras.models.load_model(folder / name / "model.keras") for name in ("stopped", "whole")
    )
    for weight, expected in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(weight, expected)
    assert scores_of(folder / "stopped") == scores_of(folder / "whole")

"""A task of one file is trained, goes on, is measured and leaves what export takes."""

import contextlib
import csv
import dataclasses
import fnmatch
import io
import json
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

from seqkeras.decoding import beam
from seqkeras.runs import RunError, RunFiles, RunRecord
from seqkeras.tokenizers import BOS, EOS, pad, read_tokenizer
from seqkeras.training.answering import answerer
from seqkeras.training.options import TASKS
from seqkeras.training.task import Modelling, Reading, Scoring
from seqkeras.training.train import train
from tests.conftest import CHECKOUT, run_python
from tests.training.exporting import refusals_of_run

PAGE = (CHECKOUT / "docs/training/own-task.md").read_text(encoding="utf-8")
MIRROR, *_ = re.findall("```python\n(.*?)```", PAGE, re.DOTALL)


def mirror_options():
    """Return the options of the page's task, which other tests do not find among the tasks."""
    exec(compile(MIRROR, "own-task.md", "exec"), {"__name__": "mirror"})
    return TASKS.pop("mirror")


MirrorOptions = mirror_options()


def mirror(words, **options):
    return MirrorOptions(file=words, passes=1, steps_per_save=3, **options).make()


def test_the_page_tells_the_methods_that_a_task_must_write_and_names_no_others():
    tables = PAGE.partition("| `Reading`")[2].partition("`run` is a")[0]
    must, bold = set(), set(re.findall(r"\*\*`(\w+)\(", tables))
    named, known = set(re.findall(r"`(\w+)\(", tables)), set()
    for part in (Reading, Modelling, Scoring):
        must |= part.__abstractmethods__
        known |= {*vars(part)}
    assert bold == must and named <= known


def test_the_file_of_the_page_passes_make_lint():
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", "training/tasks/mirror.py", "-"],
            cwd=CHECKOUT,
            input=MIRROR,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc"), length)) for length in rng.integers(2, 6, 53)]
    file = tmp_path_factory.mktemp("words") / "words.txt"
    file.write_text("\n".join(words), encoding="utf-8")
    return str(file)


def test_the_file_of_a_task_makes_a_command_without_keras():
    code = "import sys; from seqkeras.training.__main__ import main; main(['mirror', '--help'])"
    finished = run_python("-c", f"{MIRROR}\n{code}; print('keras' in sys.modules)")
    assert "Training file: a word in each line." in finished.stdout
    assert finished.stdout.splitlines()[-1] == "False", finished.stderr


@pytest.fixture(scope="module")
def run_and_lines(words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "mirror"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        train(mirror(words), folder)
    return folder, printed.getvalue().splitlines()


@pytest.fixture(scope="module")
def run(run_and_lines):
    return run_and_lines[0]


def test_a_run_of_a_task_holds_what_export_takes(run):
    names = {path.name for path in run.iterdir()}
    expected = "model.keras options.json run.json scores.json tokenizer validation.json"
    learning = "history.csv curves.png samples.txt tensorboard"
    assert names == {*expected.split(), *learning.split()}
    assert refusals_of_run(run) == []


def test_what_a_task_says_stands_in_the_run(run):
    record = json.loads((run / "run.json").read_text())
    assert record["task"] == "mirror"
    assert (record["decoding"]["start_id"], record["decoding"]["end_id"]) == (BOS, EOS)
    assert json.loads((run / "options.json").read_text())["units"] == 11
    assert json.loads((run / "scores.json").read_text()).keys() == {"words right"}
    [first, *_] = json.loads((run / "validation.json").read_text())
    assert first["target"] == first["text"][::-1]


def test_the_lines_show_metrics_and_validation_scores_and_what_to_do_next(run_and_lines):
    folder, (*steps, made, following) = run_and_lines
    measured = "loss 1.*, token_accuracy 0.*, validation_loss 1.*, words right *%"
    assert any(fnmatch.fnmatch(line, f"  step * of 6: {measured}") for line in steps)
    written = "model.keras, scores.json, history.csv, curves.png and samples.txt"
    assert made.startswith(f"{folder}: {written} are there; right are ")
    assert following == f"next: seqkeras export {folder} bundles/mirror"


def test_samples_are_validation_examples_with_the_models_answers(run):
    [*_, last] = (run / "samples.txt").read_text().split("step 6\n")
    words = [line.split() for line in last.splitlines() if line]
    assert [name for name, *_ in words[:3]] == ["input", "target", "answer"]
    assert all(target[1] == text[1][::-1] for text, target in zip(words[::3], words[1::3]))


def test_the_validation_loss_is_the_mean_over_the_real_tokens(run, words):
    model = keras.models.load_model(run / "model.keras")
    task = mirror(words)
    _, validation = task.reading.read()
    table = read_tokenizer(run / "tokenizer/source.json")
    files = RunFiles(RunRecord.read(run), {"source": table, "target": table}, [], {})
    inputs, targets, _ = task.modelling.arrays(validation, files)
    rows = np.arange(len(validation))
    logits = model({name: array[rows] for name, array in inputs.items()})
    logits, wanted = keras.ops.convert_to_numpy(logits).astype("float64"), targets[rows]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, wanted[..., None], -1)[..., 0]
    with open(run / "history.csv", encoding="utf-8", newline="") as file:
        [*_, row] = csv.DictReader(file)
    assert float(row["validation_loss"]) == pytest.approx(-chosen[wanted != 0].mean(), rel=1e-5)


def test_it_answers_by_the_beams_that_the_record_asks_for(run):
    record = RunRecord.read(run)
    table = read_tokenizer(run / "tokenizer/source.json")
    tokenizers = {"source": table, "target": table}
    decoding = record.decoding | {"num_beams": 3, "length_penalty": 0.6}
    beams = RunFiles(dataclasses.replace(record, decoding=decoding), tokenizers, [], {})
    model, texts = keras.models.load_model(run / "model.keras"), ["abc", "ca"]
    token_ids, _, scores = beam(
        model.step,
        model.encode(*pad([table.encode(text) for text in texts])),
        num_beams=3,
        length_penalty=0.6,
        start_id=BOS,
        end_id=EOS,
        max_length=6,
    )
    answers = answerer(beams)(model, texts)
    assert [answer.text for answer in answers] == [table.decode(row) for row in token_ids[:, 0]]
    np.testing.assert_allclose([answer.score for answer in answers], scores[:, 0], rtol=1e-5)


def test_a_pipeline_without_answers_in_training_is_refused(run):
    record = dataclasses.replace(RunRecord.read(run), pipeline="Spell")
    message = "pipeline must be .*Translate; received 'Spell'"
    with pytest.raises(ValueError, match=message):
        answerer(RunFiles(record, {}, [], {}))


def test_what_can_not_be_read_leaves_an_older_run_as_it_is(run, words, tmp_path):
    def unreadable():
        raise RunError("words.txt: is empty")

    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for folder, overwrite in ((run, True), (tmp_path / "new", False)):
        task = mirror(words, seed=5)
        task.reading.read = unreadable
        with pytest.raises(RunError, match="words.txt: is empty"):
            train(task, folder, overwrite)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()


def test_a_damaged_tokenizer_beside_a_checkpoint_is_refused(run, words, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "options.json").write_bytes((run / "options.json").read_bytes())
    (folder / "checkpoint.keras").write_bytes(b"")
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer/source.json").write_text("{")
    with pytest.raises(RunError, match="source.json: damaged .*; begin again with --overwrite"):
        train(mirror(words), folder)

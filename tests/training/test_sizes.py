"""--size: what it decides, of which files, and that what is given stays."""

import gzip
import json

import pytest

from seqkeras.data.texts import count_lines
from seqkeras.training.options import TASKS
from tests.training.commands import outcome, printed, refusal
from tests.training.test_calibration import noisy

SIZED = [name for name, options in TASKS.items() if options.SIZES]
FEW = ["--max-steps", 2, "--baselines", "false"]


def lines_file(path, count):
    path.write_text("\n" * count)
    return str(path)


def options_of(run):
    return json.loads((run / "options.json").read_text())


def test_four_tasks_have_sizes():
    assert sorted(SIZED) == ["classification", "regression", "tagging", "translation"]


@pytest.mark.parametrize("task", SIZED)
def test_the_lines_of_the_file_choose_the_size(task, tmp_path):
    kind, few = TASKS[task], TASKS[task].SMALL_UP_TO
    for count, size in ((few, "small"), (few + 1, "base")):
        options = kind.of(file=lines_file(tmp_path / f"{count}.txt", count))
        expected = {name: getattr(kind(), name) for name in kind.SIZES["small"]}
        expected |= kind.SIZES[size]
        assert options.size == size
        assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize("task", SIZED)
def test_what_is_given_stays(task, tmp_path):
    kind, file = TASKS[task], lines_file(tmp_path / "few.txt", 3)
    for name, small in kind.SIZES["small"].items():
        options = kind.of(file=file, **{name: 2 * small})
        assert getattr(options, name) == 2 * small
        others = {other: value for other, value in kind.SIZES["small"].items() if other != name}
        assert {other: getattr(options, other) for other in others} == others
    base = kind.of(file=file, size="base")
    assert base == kind(file=file, size="base", **kind.SIZES["base"])


def test_the_lines_of_all_corpora_count(tmp_path):
    kind = TASKS["translation"]
    half = kind.SMALL_UP_TO // 2 + 1
    files = [lines_file(tmp_path / name, half) for name in ("a.tsv", "b.tsv")]
    assert kind.of(file=files[0]).size == "small"
    assert kind.of(file=files[0], also=(files[1],)).size == "base"


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_frames_have_no_size_of_their_own(task, tmp_path):
    kind, file = TASKS[task], lines_file(tmp_path / "few.csv", 3)
    assert kind.of(file=file, numbers=("x",), series_column="s").size == "auto"
    assert kind.of(file=str(tmp_path / "few.npz")) == kind(file=str(tmp_path / "few.npz"))


def test_packed_lines_count(tmp_path):
    path = tmp_path / "lines.tsv.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\nthree\n"))
    assert count_lines(path) == 3
    path.write_bytes(b"no gzip")
    assert count_lines(path) == count_lines(tmp_path / "missing.tsv") == 0


def test_a_command_says_the_size_and_keeps_it(tmp_path):
    file = noisy(tmp_path / "own.csv", 90)
    lines = printed("classification", file, *FEW, "--units", 7, "--out", tmp_path / "run")
    small = TASKS["classification"].SIZES["small"]
    told = f"  --size small: --embedding-dim {small['embedding_dim']}"
    assert told in lines
    assert options_of(tmp_path / "run")["size"] == "small"
    again = printed("classification", file, *FEW, "--units", 7, "--out", tmp_path / "run")
    assert "finished already" in again[-1]
    lines = printed("classification", file, *FEW, "--size", "base", "--out", tmp_path / "base")
    assert not any("--size" in line for line in lines)


def test_a_training_that_starts_from_a_run_has_its_size(tmp_path):
    small, large = noisy(tmp_path / "small.csv", 90), noisy(tmp_path / "large.csv", 2_100)
    for size in ("small", "base"):
        first = tmp_path / size
        printed("classification", large, *FEW, "--size", size, "--out", first)
        start = [*FEW, "--start-from", first, "--out", tmp_path / f"{size} again"]
        printed("classification", small, *start)
        assert options_of(tmp_path / f"{size} again")["size"] == size


def test_a_size_beside_a_model_that_brings_its_own_is_refused(tmp_path):
    run = tmp_path / "teacher"
    file = noisy(tmp_path / "own.csv", 90)
    printed("classification", file, *FEW, "--out", run)
    asked = ["classification", file, "--teacher", run, "--size", "small"]
    line = refusal(*asked, out=tmp_path / "run", status=2)
    assert "--size: --teacher brings its own sizes; leave it out." in line
    assert outcome("classification", file, "--size", "huge", "--out", tmp_path / "run")[0] == 2

"""--size: what it decides, of which files, and that what is given stays."""

import gzip
import json
from types import SimpleNamespace

import pytest

from seqkeras.training.options import TASKS
from seqkeras.training.options.sizes import count_examples, values_of_size
from tests.training.commands import outcome, printed, refusal
from tests.training.test_calibration import noisy

SIZED = [name for name, options in TASKS.items() if options.SIZES]
FEW = "--max-steps 2 --looks 1 --baselines false --encoder convolution --linear false".split()


def file_of(path, count, block=False):
    """A file of so many rows; of blocks of two lines."""
    path.write_text("a\nb\n\n" * count if block else "a\n" * count)
    return str(path)


def options_of(run):
    return json.loads((run / "options.json").read_text())


def test_four_tasks_have_sizes():
    assert sorted(SIZED) == ["classification", "regression", "tagging", "translation"]


@pytest.mark.parametrize("task", SIZED)
def test_the_number_of_examples_chooses_the_size(task, tmp_path):
    kind, few = TASKS[task], TASKS[task].SMALL_UP_TO
    for count, size in ((few, "small"), (few + 1, "base")):
        options = kind.of(file=file_of(tmp_path / f"{count}.txt", count, kind.IN_BLOCKS))
        expected = {name: getattr(kind(), name) for name in kind.SIZES["small"]}
        expected |= kind.SIZES[size]
        assert values_of_size(kind, size) == expected
        assert options.size == size
        assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize("task", SIZED)
def test_what_is_given_stays(task, tmp_path):
    kind, file = TASKS[task], file_of(tmp_path / "few.txt", 3)
    for name, small in kind.SIZES["small"].items():
        options = kind.of(file=file, **{name: 2 * small})
        assert getattr(options, name) == 2 * small
        others = {other: value for other, value in kind.SIZES["small"].items() if other != name}
        assert {other: getattr(options, other) for other in others} == others
    base = kind.of(file=file, size="base")
    assert base == kind(file=file, size="base", **kind.SIZES["base"])


def test_the_pairs_of_all_corpora_count(tmp_path):
    kind = TASKS["translation"]
    half = kind.SMALL_UP_TO // 2 + 1
    files = [file_of(tmp_path / name, half) for name in ("a.tsv", "b.tsv")]
    assert kind.of(file=files[0]).size == "small"
    assert kind.of(file=files[0], also=(files[1],)).size == "base"


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_frames_have_no_size_of_their_own(task, tmp_path):
    kind, file = TASKS[task], file_of(tmp_path / "few.csv", 3)
    assert kind.of(file=file, numbers=("x",), series_column="s").size == "auto"
    assert kind.of(file=str(tmp_path / "few.npz")) == kind(file=str(tmp_path / "few.npz"))


def test_examples_are_counted_as_they_are_read(tmp_path):
    contents = {
        "rows.tsv": (b"a\tb\nc\td", False, 2),
        "rows.csv": (b'text,label\n"one\ntwo",a\n\nb,c\n', False, 3),  # the header is a record
        "rows.jsonl": (b'{"tokens": []}\n' * 5, True, 5),
        "names.conll": (b"\n\nShe O\nleft O\n\n\nHe O\n", True, 2),
        "packed.tsv.gz": (gzip.compress(b"one\ntwo\nthree\n"), False, 3),
        "broken.tsv.gz": (b"no gzip", False, 0),
        "damaged.tsv.gz": (gzip.compress(b"one")[:10] + b"\xff" * 20, False, 0),
    }
    for name, (content, in_blocks, expected) in contents.items():
        (tmp_path / name).write_bytes(content)
        assert count_examples(tmp_path / name, in_blocks) == expected, name
    assert count_examples(tmp_path / "missing.tsv") == 0
    assert count_examples(tmp_path / "rows.csv", has_header=True) == 2
    assert count_examples(tmp_path / "missing.tsv", has_header=True) == 0


HEADERS = [
    ("classification", "few.csv", {}, True),
    ("classification", "few.tsv", {}, True),
    ("classification", "few.jsonl", {}, False),
    ("classification", "few.csv", {"header": False}, False),
    ("classification", "few.txt", {"format": "tsv"}, True),
    ("regression", "few.csv", {}, True),
    ("tagging", "few.conll", {}, False),
    ("translation", "few.csv", {}, True),
    ("translation", "few.tsv", {}, False),
]


@pytest.mark.parametrize("task, name, given, has_header", HEADERS)
def test_a_header_is_no_example(task, name, given, has_header, tmp_path):
    kind = TASKS[task]
    for count, size in ((kind.SMALL_UP_TO, "small"), (kind.SMALL_UP_TO + 1, "base")):
        file = file_of(tmp_path / name, count + has_header, kind.IN_BLOCKS and "json" not in name)
        assert kind.of(file=file, **given).size == size


def test_few_pairs_are_learned_for_as_many_steps_as_before(tmp_path):
    rows = "".join(f"a {n} b\tc {n} d\n" for n in range(300))
    (tmp_path / "pairs.tsv").write_text(rows)
    for size, passes in (("small", 10), ("base", 20)):
        options = TASKS["translation"].of(file=str(tmp_path / "pairs.tsv"), size=size)
        few, many = (
            options.make().modelling.num_steps(SimpleNamespace(order=order))
            for order in (SimpleNamespace(batches_per_pass=count) for count in (5, 500))
        )
        assert (few, many) == (1000, passes * 500)
    given = TASKS["translation"].of(file=str(tmp_path / "pairs.tsv"), passes=2).make()
    order = SimpleNamespace(order=SimpleNamespace(batches_per_pass=5))
    assert given.modelling.num_steps(order) == 2 * 5


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The folder of a run of the size base, and what its training printed."""
    folder = tmp_path_factory.mktemp("base")
    command = ["classification", noisy(folder / "own.csv", 90), *FEW, "--size", "base"]
    return folder / "run", printed(*command, "--out", folder / "run")


def test_a_command_says_the_size_and_keeps_it(base, tmp_path):
    file = noisy(tmp_path / "own.csv", 90)
    lines = printed("classification", file, *FEW, "--units", 7, "--out", tmp_path / "run")
    told = "  --size small: --embedding-dim 64"
    assert told in lines
    assert options_of(tmp_path / "run")["size"] == "small"
    again = printed("classification", file, *FEW, "--units", 7, "--out", tmp_path / "run")
    assert "finished already" in again[-1]
    assert "  --size base: --embedding-dim 128, --units 128" in base[1]


@pytest.mark.long
def test_a_training_that_starts_from_a_run_has_its_size(tmp_path):
    small, large = noisy(tmp_path / "small.csv", 90), noisy(tmp_path / "large.csv", 600)
    for size in ("small", "base"):
        first = tmp_path / size
        printed("classification", large, *FEW, "--size", size, "--out", first)
        start = [*FEW, "--start-from", first, "--out", tmp_path / f"{size} again"]
        printed("classification", small, *start)
        assert options_of(tmp_path / f"{size} again")["size"] == size


def test_a_size_beside_a_model_that_brings_its_own_is_refused(base, tmp_path):
    file = noisy(tmp_path / "own.csv", 90)
    asked = ["classification", file, "--teacher", base[0], "--size", "small"]
    line = refusal(*asked, out=tmp_path / "run", status=2)
    assert "--size small: --teacher brings its own sizes; leave --size out." in line
    assert outcome("classification", file, "--size", "huge", "--out", tmp_path / "run")[0] == 2


def test_options_of_a_run_are_those_of_another_with_a_teacher(base, tmp_path):
    file, teacher = noisy(tmp_path / "own.csv", 90), base[0]
    given = ["--config", teacher / "options.json", "--teacher", teacher, *FEW]
    printed("classification", file, *given, "--out", tmp_path / "student")
    assert options_of(tmp_path / "student")["size"] == "base"


@pytest.mark.parametrize("content", ["[1]", "{", '{"task": "tagging", "size": "small"}'])
def test_a_run_without_options_of_the_task_has_no_size(content, tmp_path):
    (tmp_path / "options.json").write_text(content)
    file = file_of(tmp_path / "few.csv", 3)
    assert TASKS["classification"].of(file=file, start_from=str(tmp_path)).size == "auto"

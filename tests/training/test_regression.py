"""Regression of a user's file: what it learns, leaves and refuses."""

import dataclasses

import pytest

from seqkeras import serving
from seqkeras.training.commands import parse_options
from seqkeras.training.tasks.regression import RegressionOptions
from tests.conftest import long_fixture
from tests.training.commands import evaluated, exported, printed, refused_files, scores_of
from tests.training.pretrained_folders import hugging_face_folder

NUMBERS = {"bad": 1000.0, "dull": 2000.0, "fine": 3500.0, "good": 4000.0}
SIMILAR = {("a film", "the film"): 5.0, ("a film", "a book"): 1.0, ("a child", "the book"): 0.0}


def rated(path, count=4):
    """A CSV file whose numbers are told by a word."""
    rows = [
        f"a {word} {noun},{number}"
        for word, number in NUMBERS.items()
        for noun in ["film", "story", "cast", "play", "book"]
    ]
    path.write_text("text,number\n" + "\n".join(rows * count) + "\n")
    return str(path)


def pairs(path):
    """Pairs of STS-B's form: without a header, the number last."""
    rows = [f'"{one}",{two},{number:g}' for (one, two), number in SIMILAR.items()]
    path.write_text("\r\n".join(rows * 9) + "\r\n")
    return str(path)


@long_fixture
def tuned(tmp_path_factory):
    """A run of a fine-tuned encoder, and its bundle."""
    folder = tmp_path_factory.mktemp("rated")
    model = hugging_face_folder(folder / "tiny")
    arguments = [rated(folder / "rated.csv"), "--pretrained", model, "--learning-rate", "0.01"]
    arguments += ["--passes", "25", "--dropout", "0", "--out", str(folder / "run"), "--best-by"]
    printed("regression", *arguments, "Pearson's correlation")
    exported(folder)
    return folder


def test_numbers_of_any_size_are_learned_and_answered_by_the_bundle(tuned):
    scores = scores_of(tuned / "run")
    assert scores["examples"] == 8
    assert scores["pearson_correlation"] > 0.95 and scores["spearman_correlation"] > 0.9
    assert scores["mean_absolute_error"] < 400
    pipeline = serving.load(tuned / "bundle")
    for word, number in NUMBERS.items():
        answer = pipeline(f"a {word} story")
        assert answer.labels == () and answer.score == pytest.approx(number, abs=500)


def test_run_and_bundle_have_the_same_scores(tuned):
    of_run, of_bundle = (evaluated(tuned / name, tuned / "rated.csv") for name in ("run", "bundle"))
    assert of_run == pytest.approx(of_bundle, rel=1e-4)


def test_pairs_without_a_header_are_read_by_numbers_of_columns(tmp_path):
    columns = "--header false --text-column 1 --pair-column 2 --number-column -1".split()
    options = parse_options(
        "regression", RegressionOptions, columns, {"batch_size": 3, "held_out": 0.2}
    )
    options = dataclasses.replace(options, file=pairs(tmp_path / "stsb.csv"))
    train, validation = options.make().reading.read()
    assert len(train) + len(validation) == 27
    assert {(example.text, example.target) for example in (*train, *validation)} == {
        *SIMILAR.items()
    }


def test_a_model_without_a_folder_learns_numbers_too(tmp_path):
    options = "--units 7 --embedding-dim 5 --hops 2 --learning-rate 0.05 --passes 20 --dropout 0"
    options += " --encoder convolution --looks 1"
    file = rated(tmp_path / "rated.csv")
    printed("regression", file, *options.split(), "--out", tmp_path / "run")
    scores = scores_of(tmp_path / "run")
    assert scores["pearson_correlation"] > 0.95 and scores["mean_absolute_error"] < 500


@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("decimal_point", ["1,250", "12 %", "204.93亿", "0.5"]),
        ("decimal_comma", ["1.250", "12 %", "204,93亿", "0,5"]),
    ],
)
def test_numbers_that_people_write_are_targets(option, texts, tmp_path):
    lines = [f"text {place}\t{text}" for place, text in enumerate(texts)]
    (tmp_path / "rows.tsv").write_text("\n".join(["text\tnumber", *lines]) + "\n")
    given = {"batch_size": 1, "held_out": 0.25, option: ("number",)}
    task = RegressionOptions(file=str(tmp_path / "rows.tsv"), **given).make()
    targets = sorted(example.target for part in task.reading.read() for example in part)
    assert targets == [0.12, 0.5, 1250, 20_493_000_000]


LARGE = "".join(f"a,{1e9 + place}\n" for place in range(9))
test_a_file_without_numbers_gets_one_line = refused_files(
    "regression",
    "rows.csv",
    ("text,number\na,1\nb,high\n", "", "line 3: 'number' must be a number; found 'high'"),
    ("text,number\na,1\nb,nan\n", "", "line 3: 'number' must be a number; found 'nan'."),
    ("text,number\na,1\n\u200b,2\n", "", "rows.csv, line 3: 'text' has no token"),
    ('text,number\na,1\nb,"4,2"\n', "", "found '4,2'; --decimal-comma number reads it."),
    ('text,number\na,1\nb,"1,250"\n', "", "'1,250'; --decimal-point number or --decimal-comma"),
    (
        'text,number\na,78.0\nb,"1.234,50"\nc,9\n',
        "",
        "line 3: 'number' must be a number; found '1.234,50'; --decimal-comma number reads it, and "
        "not '78.0' of line 2: write both in one form.",
    ),
    (
        'text,number\na,78.0\nb,"1.234,50"\nc,9\n',
        "--decimal-comma number",
        "line 2: 'number' must be a number; found '78.0'; --decimal-point number reads it, and not "
        "'1.234,50' of line 3: write both in one form.",
    ),
    ('text,number\na,nan\nb,"4,2"\n', "", "line 2: 'number' must be a number; found 'nan'."),
    ("text,number\na,2\nb,2\nc,2\n", "", "must hold two numbers at least in the rows of training"),
    ("text,number\na,1\n", "", "rows.csv: 1 row is held out, so nothing is left for training"),
    ("text,number\na,1\nb,2\n", "--held-out 1", "rows.csv: 2 rows are held out, so nothing is"),
    (f"text,number\n{LARGE}", "", "the model reads float32, which hardly tells them apart; subt"),
    ("text,score\na,2\n", "", "no column 'number'; there are 'text', 'score'; --number-column cho"),
    options="--batch-size 1",
)

"""Classification of a user's file: what it learns, leaves and refuses."""

import contextlib
import csv
import io
import json
import random
from collections import Counter

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data.texts import DataError
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.runs import RunError
from seqkeras.serving.results import Classification as Answer
from seqkeras.training.__main__ import main
from seqkeras.training.parts.classification import Example
from seqkeras.training.tasks.classification import ClassificationOptions
from tests.conftest import run_python
from tests.training.exporting import refusals_of_run

TINY = "--units 7 --embedding-dim 5 --hops 2 --learning-rate 0.05 --batch-size 11".split()


def sentences(path, count=97, labels=("bad", "good")):
    """A CSV file whose label is told by a word."""
    draw = random.Random(0)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for place in range(count):
            label = labels[place % len(labels)]
            noun = draw.choice(["film", "story", "cast", 'play, "so"'])
            writer.writerow([f"a {label} {noun}", label])
    return str(path)


def pairs(path, count):
    """A TSV file in GLUE's form: whether the second sentence has the first one's noun."""
    draw = random.Random(count)
    nouns = ["house", "book", "child"]
    lines = ["index\tsentence1\tsentence2\tlabel"]
    for place in range(count):
        noun, other = draw.sample(nouns, 2)
        same = draw.random() < 0.5
        second = noun if same else other
        size = draw.choice(["", "very very big "])
        lines.append(f"{place}\ta {size}{noun}\tthe {second}\t{'same' if same else 'other'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def printed(*arguments):
    """The lines of a training that ends well."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(output):
        assert main(["classification", *map(str, arguments), *TINY]) == 0
    return output.buffer.getvalue().decode().splitlines()


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """A run on sentences, its file and its lines."""
    folder = tmp_path_factory.mktemp("reviews")
    file = sentences(folder / "reviews.csv")
    return folder / "run", file, printed(file, "--out", folder / "run")


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A run on pairs, with a file of validation, and its lines."""
    folder = tmp_path_factory.mktemp("glue")
    files = [pairs(folder / "train.tsv", 60), "--validation", pairs(folder / "dev.tsv", 23)]
    columns = ["--text-column", "sentence1", "--pair-column", "sentence2", "--encoder", "qrnn"]
    options = [*columns, "--passes", 2, "--max-length", 8]
    return folder / "run", printed(*files, "--out", folder / "run", *options)


def test_it_learns_sentences_and_says_what_to_do_next(reviews):
    folder, _, (first, *_, following) = reviews
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["examples"] == 10
    assert scores["accuracy"] == scores["macro_f1"] == scores["matthews_correlation"] == 1.0
    assert {label: of["f1"] for label, of in scores["by_label"].items()} == {"bad": 1, "good": 1}
    assert first == "classification: 87 training and 10 validation examples of 2 labels"
    assert following == f"next: seqkeras export {folder} bundles/run"


@pytest.mark.long
def test_export_takes_a_run_of_sentences_and_one_of_pairs(reviews, glue):
    assert refusals_of_run(reviews[0]) == []
    assert refusals_of_run(glue[0]) == []


def test_every_row_is_in_training_or_held_out(reviews):
    _, file, _ = reviews
    train, held_out = ClassificationOptions(file=file, batch_size=11).make().reading.read()
    with open(file, encoding="utf-8", newline="") as lines:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(lines)]
    assert Counter(train) + Counter(held_out) == Counter(rows)
    assert ClassificationOptions(file=file, batch_size=11).make().reading.read() == (
        train,
        held_out,
    )
    _, others = ClassificationOptions(file=file, batch_size=11, seed=1).make().reading.read()
    assert others != held_out


def test_a_row_of_each_label_stays_in_training(tmp_path):
    file = sentences(tmp_path / "many.csv", 41, labels=[f"label {place}" for place in range(7)])
    options = ClassificationOptions(file=file, batch_size=1, held_out=1.0)
    train, held_out = options.make().reading.read()
    assert sorted(example.target for example in train) == [f"label {place}" for place in range(7)]
    assert len(held_out) == 34


def test_texts_over_the_limit_are_cut_counted_and_left_out_of_validation(glue):
    folder, lines = glue
    texts = [line.split("\t") for line in (folder.parent / "train.tsv").read_text().splitlines()]
    cut = sum("very" in first for _, first, *_ in texts)
    assert f"  {cut} texts of more than --max-length 8 tokens are cut" in lines
    examples = json.loads((folder / "validation.json").read_text())
    assert 0 < len(examples) < 23
    assert all(len(example["input"]) == 2 for example in examples)
    assert not any("very" in example["input"][0] for example in examples)
    assert json.loads((folder / "scores.json").read_text())["examples"] == 23


def long_reviews(path, count):
    """A CSV file of sixty words each, one of the last thirty of which tells the label."""
    draw = random.Random(count)
    lines = ["text,label"]
    for place in range(count):
        words = draw.choices("the film story cast was here long day".split(), k=60)
        label = ("bad", "good")[place % 2]
        words[draw.randrange(30, 60)] = label
        lines.append(f"{' '.join(words)},{label}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_a_text_in_windows_is_learned_to_its_end_and_served_so(tmp_path):
    files = [long_reviews(tmp_path / "train.csv", 200), "--validation"]
    files.append(long_reviews(tmp_path / "dev.csv", 40))
    windows = ["--max-length", 16, "--stride", 10, "--passes", 6, "--encoder", "convolution"]
    lines = printed(*files, *windows, "--out", tmp_path / "run")
    assert not any("cut" in line for line in lines)
    scores = json.loads((tmp_path / "run/scores.json").read_text())
    assert scores["examples"] == 40 and scores["accuracy"] > 0.9
    export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(saved_models=False))
    classify = serving.load(tmp_path / "bundle", threads=1)
    validation = json.loads((tmp_path / "run/validation.json").read_text())
    assert len(validation) == 40
    answers = classify([row["input"] for row in validation])
    right = [answer.labels[0] == row["target"] for answer, row in zip(answers, validation)]
    assert np.mean(right) == scores["accuracy"]


def test_a_run_goes_on_only_with_the_data_that_it_began_with(reviews, tmp_path, capsys):
    folder, file, _ = reviews
    assert main(["classification", file, "--out", str(folder), *TINY]) == 0
    assert "finished already" in capsys.readouterr().out
    config = ["--config", str(folder / "options.json")]
    assert main(["classification", "--out", str(folder), *config]) == 0
    assert "finished already" in capsys.readouterr().out
    with open(file, "r+b") as changed:
        before = changed.read()
        changed.write(b"more,good\n")
    try:
        assert main(["classification", file, "--out", str(folder), *TINY]) == 1
    finally:
        with open(file, "wb") as same:
            same.write(before)
    assert capsys.readouterr().err == (
        f"training: {folder}: began with another content of {file}; choose another --out, or "
        "replace the run with --overwrite.\n"
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("text,label\na,b\n", "--label-column class", "there is no column 'class'; there are 't"),
        ("", "", "rows.csv: the file is empty."),
        ("text,label\n", "", "rows.csv: there is no example in it."),
        (b"text,label\n\xff,a\n", "", "rows.csv, line 2: the byte 0xff is not UTF-8; save the fi"),
        ("text,label\na,x\nb,x\n", "", "'label' must hold two labels at least; all 2 rows have "),
        ("text,label\na,x\nb,y\n", "", "each of the 2 rows has another 'label', so nothing can b"),
        ("text,label\na,x\nb,y\nc\n", "", "rows.csv, line 4: expected 2 fields, as in the header"),
        ("text,label\na,x\n ,y\n", "", "rows.csv, line 3: 'text' is empty; remove the line, or "),
        (
            "text,label\na,x\n\u200b,y\nb,y\n",
            "",
            r"rows.csv, line 3: 'text' has no token, '\u200b'; remove the line, or leave it out",
        ),
        (
            "text,other,label\na,b,x\na,\u200b,y\nb,a,y\n",
            "--pair-column other",
            "rows.csv, line 3: 'other' has no token",
        ),
        ("text,label\na,x\nb,y\nc,x\n", "", "examples are left for training, fewer than the 32 o"),
        (
            "text,label\n" + "".join(f"{place},{place % 2}\n" for place in range(40)),
            "--vocab-size 9",
            "rows.csv: --vocab-size must be at least 25, for the characters and special tokens ",
        ),
        (
            "text,label\n" + "".join(f"a a a a a,{place % 2}\n" for place in range(40)),
            "--max-length 4",
            "no validation text has from 1 to 4 tokens, so an export could check nothing; choose ",
        ),
        (
            "text,label\na,x\nb,y\nc,x\n",
            "--validation {folder}/others.csv",
            "others.csv, line 2: the label 'z' is not in ",
        ),
        ("text,label\na,x\nb,y\nc,x\n", "--pair-column text", "the columns must be distinct;"),
    ],
)
def test_a_file_that_nothing_can_be_learned_from_gets_one_line(
    content, options, message, tmp_path, capsys
):
    file = tmp_path / "rows.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "others.csv").write_text("text,label\na,z\n")
    options = options.format(folder=tmp_path).split()
    assert main(["classification", str(file), "--out", str(tmp_path / "run"), *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("training: ") and error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "others.csv"}


def test_each_fold_holds_other_rows_out_and_groups_stay_together(tmp_path):
    file = tmp_path / "questions.tsv"
    lines = ["question\tsentence\tlabel"]
    lines += [f"q{place % 11}\ts{place}\t{'ab'[place % 2]}" for place in range(50)]
    file.write_text("\n".join(lines) + "\n")
    columns = {"text_column": "question", "pair_column": "sentence", "group_column": "question"}
    options = {"file": str(file), "batch_size": 5, "folds": 3} | columns
    seen = []
    for fold in (1, 2, 3):
        train, held_out = ClassificationOptions(**options, fold=fold).make().reading.read()
        questions = {example.text[0] for example in train}
        assert not questions & {example.text[0] for example in held_out}
        assert len(train) + len(held_out) == 50
        seen += held_out
    assert len(seen) == len({example.text for example in seen}) == 50


def test_rows_with_an_empty_column_are_left_out_and_counted(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("text,label,other\n" + "a,x,\n ,y,\nb,y,\nc,,1\n" * 5 + "\u200b,x,\n")
    options = ClassificationOptions(file=str(file), batch_size=2, skip_empty=True)
    train, held_out = options.make().reading.read()
    assert {*train, *held_out} == {Example("a", "x"), Example("b", "y")}
    assert len(train) + len(held_out) == 10
    message = f"{file}: 11 rows with an empty column or a text without a token are left out"
    assert message in capsys.readouterr().out
    file.write_text("text,label\n ,x\n")
    with pytest.raises(RunError, match="each row has an empty column or a text without a token.$"):
        options.make().reading.read()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", "text,label\na,1\nb,0\nc,1.0\nd,0.0\n"),
        (
            "rows.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n'
            '{"text": "c", "label": 1.0}\n{"text": "d", "label": "0"}\n',
        ),
        (
            "texts.jsonl",
            '{"text": "a", "label": "1"}\n{"text": "b", "label": "0"}\n'
            '{"text": "c", "label": "1.0"}\n{"text": "d", "label": "0"}\n',
        ),
    ],
)
def test_a_number_is_one_label_however_it_is_written(name, content, tmp_path, capsys):
    file = tmp_path / name
    file.write_text(content)
    train, held_out = ClassificationOptions(file=str(file), batch_size=1).make().reading.read()
    assert {*train, *held_out} == {
        Example("a", "1"),
        Example("b", "0"),
        Example("c", "1"),
        Example("d", "0"),
    }
    assert f"{name}: '1', '1.0' of 'label' are read as one, '1'" in capsys.readouterr().out


def test_groups_of_two_spellings_are_told(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("text,label,group\na,x,1.10\nb,y,1.1\nc,x,2\nd,y,2\n")
    options = ClassificationOptions(file=str(file), batch_size=1, group_column="group")
    options.make().reading.read()
    assert "'1.1', '1.10' of 'group' are read as one, '1.1'" in capsys.readouterr().out


def test_labels_of_truth_are_those_of_json_python_and_spreadsheets(tmp_path):
    file, others = tmp_path / "rows.jsonl", tmp_path / "others.csv"
    lines = [{"text": word, "label": word in "ab"} for word in "abcd"]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    others.write_text("text,label\na,True\nb,TRUE\nc,False\n")
    options = ClassificationOptions(
        file=str(file), validation=str(others), batch_size=1, positive_label="True"
    )
    _, validation = options.make().reading.read()
    assert [example.target for example in validation] == ["true", "true", "false"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", "text,label\nfine,good\nlovely, good\ndull,bad\t\n"),
        (
            "rows.jsonl",
            '{"text": "fine", "label": "good"}\n{"text": "lovely", "label": " good"}\n'
            '{"text": "dull", "label": "bad\\n"}\n',
        ),
    ],
)
def test_white_space_around_a_label_is_none_of_it(name, content, tmp_path):
    file = tmp_path / name
    file.write_text(content)
    train, held_out = ClassificationOptions(file=str(file), batch_size=1).make().reading.read()
    assert {*train, *held_out} == {
        Example("fine", "good"),
        Example("lovely", "good"),
        Example("dull", "bad"),
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [("rows.txt", "; --format tells the form of another name."), ("no.csv", "--header false")],
)
def test_what_is_wrong_with_a_file_names_the_option_that_helps(name, message, tmp_path):
    file = tmp_path / name
    file.write_text("words,label\na,x\n")
    with pytest.raises(DataError, match=message):
        ClassificationOptions(file=str(file)).make().reading.read()


def test_scores_are_those_that_glue_asks_for():
    targets = ["0", "1", "1", "1", "0", "1"]
    found = ["0", "1", "0", "1", "1", "1"]
    examples = [Example("a", target) for target in targets]
    answers = [Answer((label,), 0.9, {"0": 0.1, "1": 0.9}) for label in found]
    for positive, f1 in ((None, 3 / 4), ("0", 1 / 2)):
        task = ClassificationOptions(positive_label=positive).make()
        scores = task.scoring.validation_scores(examples, answers)
        assert scores == pytest.approx(
            {
                "validation examples right": 4 / 6,
                "F1": f1,
                "macro F1": (3 / 4 + 1 / 2) / 2,
                "Matthews' correlation": (3 * 1 - 1 * 1) / (4 * 4 * 2 * 2) ** 0.5,
            }
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--fold 2", "--fold and --group-column need --folds, the number of parts."),
        ("--folds 3 --fold 4", "--fold must be at most --folds 3; received 4."),
        ("--folds 3 --validation {file}", "--folds and --validation are two ways to have"),
        ("--stride 3 --pair-column text", "--stride: a pair is not read in windows; leave it or"),
        ("--stride 3 --teacher {run}", "--stride: a teacher answers whole texts; leave it or"),
        ("--format jsonl --header false", "--header false: .jsonl names its columns in each line"),
        ("--positive-label maybe", "--positive-label 'maybe': must be one of two labels; "),
    ],
)
def test_options_of_rows_that_do_not_go_together_get_one_line(options, message, reviews, capsys):
    run, file, _ = reviews
    arguments = [
        file,
        "--out",
        str(run.parent / "other"),
        *options.format(file=file, run=run).split(),
    ]
    assert main(["classification", *arguments]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (run.parent / "other").exists()


@pytest.mark.parametrize("arguments", [[], ["nothing.csv"], ["/dev/null"], ["/tmp"]])
def test_a_file_that_is_none_gets_one_line(arguments, tmp_path, capsys):
    assert main(["classification", *arguments, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "FILE" in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_served_score_is_the_trained_one(glue, tmp_path):
    run, _ = glue
    finished = run_python("-m", "export", run, tmp_path / "bundle")
    assert finished.returncode == 0, finished.stderr
    lines = (run.parent / "dev.tsv").read_text().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    texts = [(first, second) for _, first, second, _ in rows]
    answers = serving.load(tmp_path / "bundle")(texts, truncate=True)
    right = [answer.labels == (row[-1],) for answer, row in zip(answers, rows, strict=True)]
    assert np.mean(right) == json.loads((run / "scores.json").read_text())["accuracy"]

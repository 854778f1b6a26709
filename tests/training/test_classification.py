"""Classification of a user's file: what it learns, leaves and refuses."""

import csv
import json
import random
from collections import Counter

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data.texts import DataError
from seqkeras.runs import RunError
from seqkeras.serving.results import Classification as Answer
from seqkeras.training.__main__ import main as train
from seqkeras.training.parts.classification import Example
from seqkeras.training.tasks.classification import ClassificationOptions
from tests.training.commands import exported, printed, refusal, refused_files, scores_of

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


def classified(folder, *arguments):
    """Return the lines of a training that ends well, into the run of a folder."""
    return printed("classification", *arguments, *TINY, "--out", folder / "run")


def read(file, **options):
    """Return the training and the validation examples of a file."""
    given = {"batch_size": 1} | options
    return ClassificationOptions(file=str(file), **given).make().reading.read()


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """A run on sentences, its file and its lines."""
    folder = tmp_path_factory.mktemp("reviews")
    file = sentences(folder / "reviews.csv")
    return folder / "run", file, classified(folder, file)


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A run on pairs, with a file of validation, and its lines."""
    folder = tmp_path_factory.mktemp("glue")
    files = [pairs(folder / "train.tsv", 60), "--validation", pairs(folder / "dev.tsv", 23)]
    columns = ["--text-column", "sentence1", "--pair-column", "sentence2", "--encoder", "qrnn"]
    options = [*columns, "--passes", 2, "--max-length", 8]
    return folder / "run", classified(folder, *files, *options)


def test_it_learns_sentences_and_says_what_to_do_next(reviews):
    folder, _, (first, *_, following) = reviews
    scores = scores_of(folder)
    assert scores["examples"] == 10
    assert scores["accuracy"] == scores["macro_f1"] == scores["matthews_correlation"] == 1.0
    assert {label: of["f1"] for label, of in scores["by_label"].items()} == {"bad": 1, "good": 1}
    assert first == "classification: 87 training and 10 validation examples of 2 labels"
    assert following == f"next: seqkeras export {folder} bundles/run"


def test_every_row_is_in_training_or_held_out(reviews):
    _, file, _ = reviews
    train, held_out = read(file)
    with open(file, encoding="utf-8", newline="") as lines:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(lines)]
    assert Counter(train) + Counter(held_out) == Counter(rows)
    assert read(file) == (train, held_out)
    assert read(file, seed=1)[1] != held_out


def test_a_row_of_each_label_stays_in_training(tmp_path):
    file = sentences(tmp_path / "many.csv", 41, labels=[f"label {place}" for place in range(7)])
    train, held_out = read(file, held_out=1.0)
    assert sorted(example.target for example in train) == [f"label {place}" for place in range(7)]
    assert len(held_out) == 34


@pytest.mark.long
def test_texts_over_the_limit_are_cut_counted_and_left_out_of_validation(glue):
    folder, lines = glue
    texts = [line.split("\t") for line in (folder.parent / "train.tsv").read_text().splitlines()]
    cut = sum("very" in first for _, first, *_ in texts)
    assert f"  {cut} texts of more than --max-length 8 tokens are cut" in lines
    examples = json.loads((folder / "validation.json").read_text())
    assert 0 < len(examples) < 23
    assert all(len(example["input"]) == 2 for example in examples)
    assert not any("very" in example["input"][0] for example in examples)
    assert scores_of(folder)["examples"] == 23


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


@pytest.mark.long
def test_a_text_in_windows_is_learned_to_its_end_and_served_so(tmp_path):
    files = [long_reviews(tmp_path / "train.csv", 200), "--validation"]
    files.append(long_reviews(tmp_path / "dev.csv", 40))
    windows = ["--max-length", 16, "--stride", 10, "--passes", 6, "--encoder", "convolution"]
    assert not any("cut" in line for line in classified(tmp_path, *files, *windows))
    scores = scores_of(tmp_path / "run")
    assert scores["examples"] == 40 and scores["accuracy"] > 0.9
    classify = serving.load(exported(tmp_path), threads=1)
    validation = json.loads((tmp_path / "run/validation.json").read_text())
    answers = classify([row["input"] for row in validation])
    right = [answer.labels[0] == row["target"] for answer, row in zip(answers, validation)]
    assert len(right) == 40 and np.mean(right) == scores["accuracy"]


def test_a_run_goes_on_only_with_the_data_that_it_began_with(reviews):
    folder, file, _ = reviews
    config = ["--config", folder / "options.json"]
    for command in ([file, *TINY], config):
        assert "finished already" in printed("classification", *command, "--out", folder)[-1]
    with open(file, "rb") as same:
        before = same.read()
    with open(file, "ab") as changed:
        changed.write(b"more,good\n")
    try:
        line = refusal("classification", file, *TINY, out=folder)
    finally:
        with open(file, "wb") as same:
            same.write(before)
    assert line == (
        f"seqkeras train: {folder}: began with another content of {file}; choose another --out, or "
        "replace the run with --overwrite."
    )


HEAD = "text,label\n"
THREE, FORTY = f"{HEAD}a,x\nb,y\nc,x\n", [f"{place},{place % 2}\n" for place in range(40)]


def test_a_file_of_few_rows_has_batches_that_they_fill(tmp_path):
    (tmp_path / "rows.csv").write_text(HEAD + "".join(FORTY[:12]))
    options = "--embedding-dim 2 --units 2 --max-steps 2 --baselines false --linear false"
    lines = printed(
        "classification", tmp_path / "rows.csv", *options.split(), "--out", tmp_path / "run"
    )
    assert "  a batch has 4 examples, since 11 are left for training" in lines
    assert json.loads((tmp_path / "run/options.json").read_text())["batch_size"] == 32


test_a_file_that_nothing_can_be_learned_from_gets_one_line = refused_files(
    "classification",
    "rows.csv",
    (f"{HEAD}a,b\n", "--label-column class", "there is no column 'class'; there are 't"),
    ("", "", "rows.csv: the file is empty."),
    (HEAD, "", "rows.csv: there is no example in it."),
    (b"text,label\n\xff,a\n", "", "rows.csv, line 2: the byte 0xff is not UTF-8; save the fi"),
    (f"{HEAD}a,x\nb,x\n", "", "'label' must hold two labels at least; all 2 rows have "),
    (f"{HEAD}a,x\nb,y\n", "", "each of the 2 rows has another 'label', so nothing can b"),
    (f"{HEAD}a,x\nb,y\nc\n", "", "rows.csv, line 4: expected 2 fields, as in the header"),
    (f"{HEAD}a,x\n ,y\n", "", "rows.csv, line 3: 'text' is empty; remove the line, or "),
    (f"{HEAD}a,x\n\u200b,y\nb,y\n", "", r"line 3: 'text' has no token, '\u200b'; remove the line"),
    ("text,b,label\na,b,x\na,\u200b,y\n", "--pair-column b", "line 3: 'b' has no token"),
    (HEAD + "".join(FORTY), "--vocab-size 9", "rows.csv: --vocab-size must be at least 25, for"),
    (HEAD + "a a a a,x\na a a a,y\n" * 20, "--max-length 4", "no validation text has from 1 to"),
    (THREE, "--validation {tmp_path}/others.csv", "others.csv, line 2: the label 'z' is not in "),
    (THREE, "--pair-column text", "the columns must be distinct;"),
    beside={"others.csv": "text,label\na,z\n"},
)


def test_each_fold_holds_other_rows_out_and_groups_stay_together(tmp_path):
    file = tmp_path / "questions.tsv"
    lines = ["question\tsentence\tlabel"]
    lines += [f"q{place % 11}\ts{place}\t{'ab'[place % 2]}" for place in range(50)]
    file.write_text("\n".join(lines) + "\n")
    columns = {"text_column": "question", "pair_column": "sentence", "group_column": "question"}
    seen = []
    for fold in (1, 2, 3):
        train, held_out = read(file, folds=3, fold=fold, **columns)
        questions = {example.text[0] for example in train}
        assert not questions & {example.text[0] for example in held_out}
        assert len(train) + len(held_out) == 50
        seen += held_out
    assert len(seen) == len({example.text for example in seen}) == 50


def test_rows_with_an_empty_column_are_left_out_and_counted(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("text,label,other\n" + "a,x,\n ,y,\nb,y,\nc,,1\n" * 5 + "\u200b,x,\n")
    train, held_out = read(file, skip_empty=True)
    assert {*train, *held_out} == {Example("a", "x"), Example("b", "y")}
    assert len(train) + len(held_out) == 10
    message = f"{file}: 11 rows with an empty column or a text without a token are left out"
    assert message in capsys.readouterr().out
    file.write_text("text,label\n ,x\n")
    with pytest.raises(RunError, match="each row has an empty column or a text without a token.$"):
        read(file, skip_empty=True)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("rows.csv", ["1", "0", "1.0", "0.0"]),
        ("rows.jsonl", [1, 0, 1.0, "0"]),
        ("texts.jsonl", ["1", "0", "1.0", "0"]),
    ],
)
def test_a_number_is_one_label_however_it_is_written(name, labels, tmp_path, capsys):
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip("abcd", labels)]
    if name == "rows.csv":
        lines = ["text,label", *map(",".join, zip("abcd", labels))]
    (tmp_path / name).write_text("\n".join(lines))
    train, held_out = read(tmp_path / name)
    assert {*train, *held_out} == {*map(Example, "abcd", "1010")}
    assert f"{name}: '1', '1.0' of 'label' are read as one, '1'" in capsys.readouterr().out


def test_labels_of_truth_are_those_of_json_python_and_spreadsheets(tmp_path):
    file, others = tmp_path / "rows.jsonl", tmp_path / "others.csv"
    lines = [{"text": word, "label": word in "ab"} for word in "abcd"]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    others.write_text("text,label\na,True\nb,TRUE\nc,False\n")
    _, validation = read(file, validation=str(others), positive_label="True")
    assert [example.target for example in validation] == ["true", "true", "false"]


def test_white_space_around_a_label_is_none_of_it(tmp_path):
    labels = {"a": "x", "b": " x", "c": "y\n"}
    lines = [{"text": text, "label": label} for text, label in labels.items()]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "rows.csv").write_text("text,label\na,x\nb, x\nc,y\t\n")
    for name in ("rows.jsonl", "rows.csv"):
        train, held_out = read(tmp_path / name)
        assert {*train, *held_out} == {Example("a", "x"), Example("b", "x"), Example("c", "y")}


@pytest.mark.parametrize(
    ("name", "message"),
    [("rows.txt", "; --format tells the form of another name."), ("no.csv", "--header false")],
)
def test_what_is_wrong_with_a_file_names_the_option_that_helps(name, message, tmp_path):
    file = tmp_path / name
    file.write_text("words,label\na,x\n")
    with pytest.raises(DataError, match=message):
        read(file)


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
def test_options_of_rows_that_do_not_go_together_get_one_line(options, message, reviews, tmp_path):
    run, file, _ = reviews
    given = [file, *options.format(file=file, run=run).split()]
    status = 1 if "--positive" in options else 2
    assert message in refusal("classification", *given, out=tmp_path / "run", status=status)


@pytest.mark.parametrize("arguments", [[], ["nothing.csv"], ["/dev/null"], ["/tmp"]])
def test_a_file_that_is_none_gets_one_line(arguments, tmp_path):
    assert "FILE" in refusal("classification", *arguments, out=tmp_path / "run", status=2)


@pytest.mark.long
def test_the_served_score_is_the_trained_one(glue):
    run, _ = glue
    lines = (run.parent / "dev.tsv").read_text().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    texts = [(first, second) for _, first, second, _ in rows]
    answers = serving.load(exported(run.parent))(texts, truncate=True)
    right = [answer.labels == (row[-1],) for answer, row in zip(answers, rows, strict=True)]
    assert np.mean(right) == scores_of(run)["accuracy"]


def test_no_trees_are_made_of_texts_of_one_word(tmp_path, capsys):
    file = tmp_path / "words.csv"
    file.write_text("text,label\n" + "fine,good\nawful,bad\n" * 20)
    command = ["classification", str(file), "--encoder", "tree", "--out", str(tmp_path / "run")]
    assert train(command) == 1
    assert "every text is one word, of which no tree can be made" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

"""Tagging of a user's file: what it learns, leaves and refuses."""

import json
import random

import pytest

from seqkeras import serving
from seqkeras.serving.results import Tagging as Answer
from seqkeras.serving.results import Word
from seqkeras.training.console import console
from seqkeras.training.parts.splitting import NoneHeldOutError
from seqkeras.training.parts.tagged_sentences import Example
from seqkeras.training.tasks.tagging import TaggingOptions
from tests.conftest import long_fixture
from tests.training.commands import (
    evaluated,
    exported,
    own_scores_of,
    printed,
    refused_files,
    scores_of_both,
)

TINY = "--units 11 --embedding-dim 12 --learning-rate 0.03 --batch-size 7 --passes 6".split()
NAMES = {"PER": ["Ada Lovelace", "Alan Turing", "Grace"], "LOC": ["Oslo", "New York"]}


def sentences(path, count, iob1=True):
    """A file in CoNLL's form whose names are told by their words."""
    draw, lines = random.Random(count), []
    for _ in range(count):
        for part in draw.choice(["PER lives in LOC .", "LOC saw PER", "nobody left LOC ."]).split():
            name = draw.choice(NAMES[part]).split() if part in NAMES else [part]
            for place, word in enumerate(name):
                letter = "I" if iob1 or place else "B"
                lines.append(f"{word} x {letter}-{part}" if part in NAMES else f"{word} x O")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@long_fixture
def trained(tmp_path_factory):
    """A run and its bundle."""
    folder = tmp_path_factory.mktemp("tagging")
    file, validation = sentences(folder / "train.txt", 120), sentences(folder / "dev.txt", 23)
    tagged(folder, file, "--validation", validation)
    exported(folder)
    return folder


def tagged(folder, *arguments):
    """Return the scores of a training into the run of a folder."""
    printed("tagging", *TINY, *arguments, "--out", folder / "run")
    return own_scores_of(folder / "run")


def test_entities_are_learned_from_iob1_and_scored(trained):
    header = (trained / "run/history.csv").read_text().splitlines()[0].split(",")
    assert header.index("F1 of entities") < header.index("words right")  # which tells the best
    scores = own_scores_of(trained / "run")
    assert scores["sentences"] == 23
    assert scores["accuracy"] == scores["entity_f1"] == 1.0
    of_label = {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    counts = {label: scores["by_label"][label].pop("entities") for label in ("LOC", "PER")}
    assert scores["by_label"] == {"LOC": of_label, "PER": of_label}
    assert sum(counts.values()) == scores["entities"] > 23


def test_the_bundle_finds_the_entities_of_a_text_and_of_its_words(trained):
    pipeline = serving.load(trained / "bundle")
    text = "Ada Lovelace lives in New York ."
    for given in (text, tuple(text.split())):
        found = [(entity.text, entity.label) for entity in pipeline(given).entities]
        assert found == [("Ada Lovelace", "PER"), ("New York", "LOC")]


def test_run_and_bundle_have_the_same_scores_on_a_file_in_iob2(trained, tmp_path):
    path = tmp_path / "test.txt"
    sentences(path, 31, iob1=False)
    path.write_text(path.read_text().replace(". x O", "\u200b x O\n. x O"))  # a word of no token
    scores = scores_of_both(trained, path)
    assert scores["sentences"] == 31 and scores["entity_f1"] == 1.0


def json_lines(path, rows):
    """Write a file of sentences, whose tags are given as a text."""
    lines = [{"tokens": words.split(), "tags": tags.split()} for words, tags in rows]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.mark.long
def test_words_that_are_cut_off_count_as_outside_in_run_and_bundle(tmp_path):
    long = json_lines(tmp_path / "long.jsonl", [("a b " * 5, "X Y " * 5)] * 9)
    short = json_lines(tmp_path / "short.jsonl", [("a b", "X Y")] * 9)
    scores = tagged(tmp_path, long, "--max-length", 6, "--validation", short)
    assert scores == {"sentences": 9, "words": 18, "accuracy": 1.0}
    exported(tmp_path)
    assert 0 < scores_of_both(tmp_path, long)["accuracy"] <= 0.4  # four of ten words are read


def test_a_chain_learns_tags_that_a_word_does_not_tell_and_serves_them(tmp_path):
    rows = [("x " * length, ("A B " * 4)[: 2 * length]) for length in (4, 7, 8)]
    path = json_lines(tmp_path / "same.jsonl", rows * 6)
    blind = ["--encoder", "convolution", "--width", 1, "--validation", path]
    assert tagged(tmp_path, path, "--passes", 20, *blind, "--crf", "true")["accuracy"] == 1.0
    answer = serving.load(exported(tmp_path), threads=1)(("x",) * 7)
    assert [word.tag for word in answer.words] == rows[1][1].split()


test_a_file_that_can_not_be_learned_from_is_one_line = refused_files(
    "tagging",
    "train.txt",
    ("a O\nb\n", "", "line 2: expected 2 columns"),
    ("a O\n", "", "train.txt: each sentence has a tag that no other has, so that none can be"),
    ("a X\n\n" * 9, "", "all words have the tag 'X'"),
    ("a X\n\nb Y\n\n", "--batch-size 1", "each sentence has a tag that no other has"),
    ("a X\n\n\u200b Y\n\n", "", "train.txt, line 3: no word of the sentence has a token. With "),
    ("a B-X\nb O\n\nc o\n", "", "'c' has the tag 'o'; nearly all others are of IOB2; write 'O'."),
    (
        "a NN\n\nb B-\n\n" * 9,
        "--validation {tmp_path}/others.txt",
        "others.txt, line 2: the word 'a' has the tag 'VB', which is not in {tmp_path}/train.txt; "
        "that has 'B-', 'NN'. With --skip-bad true it is left out.",
    ),
    beside={"others.txt": "\na VB\n\nb VB\n"},
)


def read(path, content, **options):
    """The training and validation examples of a file's content."""
    path.write_text(content, encoding="utf-8")
    return TaggingOptions(file=str(path), batch_size=1, **options).make().reading.read()


def test_sentences_that_can_not_be_used_are_left_out_and_counted(tmp_path, capsys):
    file, others = tmp_path / "train.txt", tmp_path / "dev.txt"
    others.write_text("a B-X\n\na B-Z\n\n\u200b O\n\nd I-X\n", encoding="utf-8")
    content = "a B-X\nb O\n\n" * 9 + "a o\n\na I-X\n\n\u200b O\n"
    train, validation = read(file, content, skip_bad=True, validation=str(others))
    assert {example.target[0] for example in train} == {"B-X"} and len(train) == 9
    assert [example.text for example in validation] == [("a",)]
    printed = capsys.readouterr().out
    assert f"  3 sentences are left out; the first: {file}, line 28: the word 'a' has" in printed
    assert f"  3 sentences are left out; the first: {others}, line 3: the word 'a' has" in printed


@pytest.mark.parametrize(
    "content, said",
    [
        ("a B_X\nb O\n\n", "in IOB2 write 'B_X' as 'B-X'\n"),
        ("a B-X\nb 0\nc I-X\n\n", "in IOB2 write '0' as 'O'\n"),
        ("a X-B\nb X-M\nc X-E\nd 0\n\n", "in BMES write 'X-B' as 'B-X', 'X-M' as 'M-X', 'X-E' "),
        ("a DET\nb NOUN\n\n", None),
    ],
)
def test_tags_that_spell_entities_in_another_way_get_a_hint(tmp_path, capsys, content, said):
    read(tmp_path / "train.txt", content * 3)
    printed = capsys.readouterr().out
    assert "which spell no entities" in printed
    if said is None:
        assert "as they stand" not in printed
    else:
        assert f"the tags spell no entities as they stand; for entities {said}" in printed


def test_entities_in_bmes_are_learned_and_counted(tmp_path, capsys):
    content = "a B-X\nb M-X\nc E-X\nd O\n\n"
    train, _ = read(tmp_path / "train.txt", content * 3)
    assert train[0].target == ("B-X", "M-X", "E-X", "O")
    assert "entities in BMES" in capsys.readouterr().out
    read(tmp_path / "train.txt", content * 3 + "a M-X\nb E-X\nc O\n\n")
    assert "train.txt: 1 entity begins with M- or E-, the first in" in capsys.readouterr().out


def test_words_without_a_token_are_left_out_of_their_sentences(tmp_path, capsys):
    train, validation = read(tmp_path / "train.txt", "\nNew B-X\n\u200b O\nYork I-X\n\n" * 7)
    assert {example.text for example in (*train, *validation)} == {("New", "York")}
    assert "train.txt: 7 words have no token, the first in the sentence of line 2; " in (
        capsys.readouterr().out
    )


def test_sentences_with_a_tag_that_no_other_has_stay_in_training(tmp_path):
    content = "".join(f"a T{place}\nb O\n\n" for place in range(7)) + "a O\n\n" * 11
    train, validation = read(tmp_path / "train.txt", content, held_out=1.0, split="sentences")
    assert sorted(example.target[0] for example in train) == ["O", *(f"T{n}" for n in range(7))][1:]
    assert len(validation) == 11


def numbered(count, mark_every=None):
    """Sentences of a word and its number, with marks between documents of so many sentences."""
    marks = ("-DOCSTART- O\n\n" if mark_every and n % mark_every == 0 else "" for n in range(count))
    return "".join(f"{mark}w{n} {'AB'[n % 2]}\n\n" for n, mark in enumerate(marks))


@pytest.mark.parametrize(
    "count, mark_every, size, groups, said",
    [
        (210, 7, 7, 3, "3 documents are held out of 30"),
        (90, 9, 9, 1, "1 document is held out of 10"),
        (700, None, 10, 7, "7 blocks are held out of 70"),
        (700, 1000, 10, 7, "7 blocks are held out of 70"),  # one document
        (210, None, 4, 5, "5 blocks are held out of 53"),
    ],
)
def test_neighbours_are_in_one_part(count, mark_every, size, groups, said, tmp_path, capsys):
    content = numbered(count, mark_every)
    train, validation = (
        [int(example.text[0][1:]) for example in part]
        for part in read(tmp_path / "train.txt", content)
    )
    assert {*train} | {*validation} == {*range(count)} and train == sorted(train)
    parts = {number // size for number in validation}
    assert len(parts) == groups and not parts & {number // size for number in train}
    assert said in capsys.readouterr().out
    _, alone = read(tmp_path / "train.txt", content, split="sentences")
    assert len({int(example.text[0][1:]) // size for example in alone}) > groups
    assert "held out" not in capsys.readouterr().out


def test_documents_that_can_not_be_held_out_may_be_split(tmp_path):
    content = "-DOCSTART- O\n\na X\n\na X\n\n-DOCSTART- O\n\na Y\n\na Y\n\n"
    message = "each document has a tag that no other has, .* or choose --split sentences"
    with pytest.raises(NoneHeldOutError, match=message):
        read(tmp_path / "train.txt", content)
    train, validation = read(tmp_path / "train.txt", content, split="sentences")
    assert len(train) == 3 and len(validation) == 1


def test_a_file_without_entities_is_not_said_to_be_right():
    task = TaggingOptions().make()
    task.reading.scheme = "IOB2"
    examples = [Example(("a", "b"), ["O", "O"])]
    answers = [Answer(words((("a", "O"), ("b", "O"))), ())]
    scores = task.scoring.validation_scores(examples, answers)
    assert scores == {"F1 of entities": 0.0, "words right": 1.0}
    scores = task.scoring.scores({"validation": (examples, answers)})
    expected = "F1 of entities is 0.00%, as there are none, 100.00% of"
    assert task.scoring.summary(scores).startswith(expected)


@pytest.mark.long
def test_precision_and_recall_of_entities_are_told_by_label(capsys):
    task = TaggingOptions(file="names.txt").make()
    task.reading.scheme = "IOB2"
    examples = [
        Example(("Ada", "saw", "Oslo"), ["B-PER", "O", "B-LOC"]),
        Example(("in", "Bergen"), ["O", "B-LOC"]),
    ]
    rows = (("Ada", "B-PER"), ("saw", "B-PER"), ("Oslo", "B-LOC")), (("in", "O"), ("Bergen", "O"))
    answers = [Answer(words(row), ()) for row in rows]
    scores = task.scoring.scores({"validation": (examples, answers)})
    assert (scores["entities"], scores["entity_precision"]) == (3, 2 / 3)
    assert (scores["entity_recall"], scores["entity_f1"]) == (2 / 3, 2 / 3)
    assert scores["by_label"] == {
        "LOC": {"entities": 2, "precision": 1.0, "recall": 0.5, "f1": 2 / 3},
        "PER": {"entities": 1, "precision": 0.5, "recall": 1.0, "f1": 2 / 3},
    }
    console.print(task.scoring.table(scores))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    cells = [[cell for cell in row if cell not in "│┃"] for row in rows]
    assert ["label", "entities", "precision", "recall", "F1"] in cells
    assert ["LOC", "2", "100.00%", "50.00%", "66.67%"] in cells
    assert ["all", "3", "66.67%", "66.67%", "66.67%"] in cells
    expected = "F1 of entities is 66.67% (precision 66.67%, recall 66.67%), 60.00% of the words"
    assert task.scoring.summary(scores).startswith(expected)


def words(row):
    starts = [sum(len(word) + 1 for word, _ in row[:place]) for place in range(len(row))]
    return tuple(
        Word(word, tag, start, start + len(word), 0.5)
        for (word, tag), start in zip(row, starts, strict=True)
    )


def test_samples_show_words_with_their_tags():
    example = Example(("Ada", "left"), ["B-PER", "O"])
    answer = Answer(words((("Ada", "O"), ("left", "O"))), ())
    assert TaggingOptions(file="names.txt").make().scoring.sample(example, answer) == {
        "input": "Ada left",
        "target": "Ada/B-PER left/O",
        "answer": "Ada/O left/O",
    }


@pytest.mark.long
def test_characters_of_words_tell_names_that_training_never_saw(tmp_path):
    draw = random.Random(0)

    def file(name, count):
        lines = []
        for _ in range(count):
            stem = "".join(draw.choices("abcdefghijklmno", k=4))
            tag, word = draw.choice([("B-PER", stem + "zz"), ("O", stem)])
            lines += [f"{word} {tag}", "left O", ""]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        return str(tmp_path / name)

    files = [file("train.txt", 120), "--validation", file("dev.txt", 30)]
    scores = tagged(tmp_path, *files, "--character-filters", 7, "--vocab-size", 60)
    assert scores["entity_f1"] > 0.95
    assert evaluated(exported(tmp_path), files[-1]) == scores

"""The text of files: which lines are too long, of every reader."""

import json
import random

import pytest

from seqkeras.data import texts
from seqkeras.data.choices import read_choices
from seqkeras.data.columns import read_columns
from seqkeras.data.conll import read_sentences
from seqkeras.data.dialogues import read_dialogues
from seqkeras.data.documents import Corpus, read_documents
from seqkeras.data.parallel import read_parallel, read_pronunciations, read_tab_separated
from seqkeras.data.series import read_series
from seqkeras.data.squad import read_questions
from seqkeras.data.texts import DataError, read_text
from seqkeras.data.trees import read_trees
from seqkeras.serving.parsing import MOST_OF_LINE

READERS = {
    "rows.csv": lambda path: read_columns(path, ["a", "b"]),
    "rows.tsv": lambda path: read_columns(path, ["a", "b"]),
    "rows.jsonl": lambda path: read_columns(path, ["a", "b"]),
    "words.conll": read_sentences,
    "words.jsonl": read_sentences,
    "answers.jsonl": read_dialogues,
    "questions.jsonl": read_questions,
    "choices.jsonl": read_choices,
    "pairs.txt": read_tab_separated,
    "source.txt": lambda path: read_parallel(path, path),
    "words.dict": read_pronunciations,
    "trees.txt": read_trees,
    "series.csv": lambda path: read_series(path, ["a"]),
    "text.txt": read_text,
    "text.txt.gz": read_text,
    "documents.txt": lambda path: read_documents(path, "lines"),
    "documents.txt.gz": lambda path: Corpus.of_files([path]),
}


@pytest.mark.parametrize("name", READERS)
def test_a_line_that_is_too_long_is_named_by_every_reader(name, write):
    first = {"rows.tsv": b"a\tb", "series.csv": b"a,b", "rows.csv": b"a,b"}.get(name, b"")
    content = first + b"\n\n" + b"x" * (MOST_OF_LINE + 1) + b"\nc,d\n"
    path = write(name, content)
    with pytest.raises(DataError) as error:
        READERS[name](path)
    assert str(error.value) == (
        f"{path}, line 3: the line has more than 10,000,000 bytes, the most that a line may have; "
        "cut it into several, or remove it."
    )


def test_lines_up_to_the_limit_and_longer_files_are_read(tmp_path, write):
    content = b"\n".join([b"x" * MOST_OF_LINE] * 2) + b"\nc"
    assert read_text(write("text.txt", content)) == content.decode()
    assert [*map(len, read_documents(tmp_path / "text.txt", "lines")[0])] == [
        *[MOST_OF_LINE] * 2,
        1,
    ]


def test_a_file_of_squad_is_one_line_and_its_contexts_are_not_too_long(write):
    answers = [{"text": "a", "answer_start": 0}]
    row = {"id": "x", "question": "a?", "answers": answers}
    content = [
        {"context": f"a{context * ' b'}", "qas": [row]} for context in (10**6, 10**6 + 1) * 3
    ]
    path = write("train.json", json.dumps({"data": [{"paragraphs": content}]}))
    assert path.stat().st_size > MOST_OF_LINE and len(read_questions(path).questions) == 6
    content[2]["context"] *= 6
    path.write_text(json.dumps({"data": [{"paragraphs": content}]}), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"article 1, paragraph 3, .*: the context has 12,000,006 c"
    ):
        read_questions(path)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_lines_are_those_of_the_whole_text(at_once, monkeypatch):
    monkeypatch.setattr(texts, "LINES_AT_ONCE", at_once)
    draw = random.Random(at_once)
    for _ in range(500):
        text = "".join(draw.choices(["a", "b", "\u2028", "\n", "\r\n"], k=draw.randint(0, 12)))
        lines = text.replace("\r\n", "\n").split("\n")
        assert texts.lines_of(text) == (lines if lines[-1] else lines[:-1])


@pytest.mark.parametrize("at_once", [1, 2, 7, texts.BYTES_AT_ONCE])
def test_a_file_is_read_line_by_line_as_it_is_read_at_once(at_once, monkeypatch, write):
    monkeypatch.setattr(texts, "BYTES_AT_ONCE", at_once)
    draw = random.Random(at_once)
    for number in range(200):
        parts = draw.choices(
            ["a", "é", "\u2028", "\x0b", "\r", "\n", "\r\n", " "], k=draw.randint(1, 12)
        )
        text = "".join(["b\n", *parts])
        path = write(f"{number}.txt{draw.choice(['', '.gz'])}", draw.choice(["", "\ufeff"]) + text)
        lines = [f"{line}\n" for line in read_text(path).split("\n")]
        assert [*texts.read_lines(path)] == (lines[:-1] if lines[-1] == "\n" else lines)
    for content, message in ((b" \r\n\n", "the file is empty"), (b"a\n\xff\n", "line 2: the byte")):
        with pytest.raises(DataError, match=message):
            [*texts.read_lines(write("wrong.txt", content))]


@pytest.mark.parametrize("at_once", [1, 7, texts.BYTES_AT_ONCE])
def test_a_file_is_cut_anywhere_as_its_text_is(at_once, monkeypatch, write):
    monkeypatch.setattr(texts, "BYTES_AT_ONCE", at_once)
    draw = random.Random(at_once)
    for number in range(100):
        text = "".join(["b", *draw.choices(["a", "é ", "😀", "\r", "\n", "\r\n"], k=20)])
        file = texts.TextFile(write(f"{number}.txt", draw.choice(["", "\ufeff"]) + text))
        cut = draw.randint(0, len(text))
        assert len(file) == len(text) and len(file.cut(cut)) == cut
        assert "".join(file) == text and "".join(file.cut(cut)) == text[:cut]
        assert file.rest(cut) == text[cut:]
        assert all(part.endswith("\n") for part in [*file][:-1])


def test_a_file_that_changes_between_two_readings_is_told(write):
    file = texts.TextFile(write("text.txt", "one\n"))
    write("text.txt", "one, two\n")
    for read in (lambda: [*file], lambda: file.rest(1)):
        with pytest.raises(DataError, match="text.txt: has changed while it was read; start again"):
            read()


def test_a_file_that_changes_while_it_is_read_is_told(write, monkeypatch):
    monkeypatch.setattr(texts, "BYTES_AT_ONCE", 4)
    path = write("lines.txt", "one\n" * 9)
    lines = texts.read_lines(path)
    assert next(lines) == "one\n"
    path.write_text("one\n" * 5, encoding="utf-8")
    with pytest.raises(DataError, match="lines.txt: has changed while it was read; start again."):
        list(lines)


def test_lines_that_end_in_cr_alone_are_told_by_every_reader_of_lines(write):
    for name in ("rows.tsv", "pairs.txt", "words.conll", "rows.csv"):
        with pytest.raises(DataError, match="its lines end in CR alone; save it with line ends of"):
            READERS[name](write(name, "a,b\tc\rd,e\tf\r"))

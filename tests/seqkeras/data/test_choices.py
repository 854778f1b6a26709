"""Texts with choices: SWAG's and ARC's files, and tables of any names."""

import json

import pytest

from seqkeras.data.choices import Choices, NameOptions, Names, read_choices
from seqkeras.data.texts import DataError
from tests.conftest import public_data

SWAG = """,video-id,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label
0,v,The cat sat. It,The cat sat.,It,gold,"ran, fast.",flew.,sang.,melted.,1
"""
ARC = "question,A,B,C,D,answer\nWhat is cold?,fire,ice,,,B\nWho barks?,cats,birds,fish,dogs,D\n"
STEM = {
    "id": "x",
    "question": {
        "stem": "What is cold?",
        "choices": [{"text": "fire", "label": "1"}, {"text": "ice", "label": "2"}],
    },
    "answerKey": "2",
}
SWAG_ROW = {  # as Hugging Face has it, and the next
    "video-id": "anetv_jkn6uvmqwh4",
    "startphrase": "The cat sat. It",
    "sent1": "The cat sat.",
    "sent2": "It",
    "ending0": "ran.",
    "ending1": "flew.",
    "ending2": "sang.",
    "ending3": "melted.",
    "label": 0,
}
ARC_ROW = {
    "id": "Mercury_7175875",
    "question": "What is cold?",
    "choices": {"text": ["fire", "ice"], "label": ["A", "B"]},
    "answerKey": "B",
}
COLD = ("What is cold?", ("fire", "ice"), 1)


def read(path, names=None):
    rows, left_out = read_choices(path, names)
    assert left_out == []
    return [(row.text, row.choices, row.answer) for row in rows]


def test_an_ending_of_swag_stands_behind_the_second_sentence(tmp_path, write):
    [row] = read_choices(write("swag.csv", SWAG)).rows
    endings = ("It ran, fast.", "It flew.", "It sang.", "It melted.")
    assert row == Choices(f"{tmp_path}/swag.csv, line 2", "The cat sat.", endings, 1)


def test_questions_of_arc_may_have_fewer_choices(write):
    dogs = ("Who barks?", ("cats", "birds", "fish", "dogs"), 3)
    assert read(write("arc.csv", ARC)) == [COLD, dogs]
    assert read(write("arc.tsv", ARC.replace(",", "\t"))) == [COLD, dogs]
    assert read(write("arc.jsonl", json.dumps(STEM))) == [COLD]


def test_lines_are_read_as_hugging_face_has_them(write):
    endings = ("It ran.", "It flew.", "It sang.", "It melted.")
    assert read(write("swag.jsonl", json.dumps(SWAG_ROW))) == [("The cat sat.", endings, 0)]
    assert read(write("arc.jsonl", json.dumps(ARC_ROW))) == [COLD]


def test_tables_of_other_names_and_lists_are_read(write):
    row = {"text": "What is cold?", "choices": ["fire", "ice"], "answer": 1}
    assert read(write("list.jsonl", json.dumps(row))) == [COLD]
    named = Names("asked", ("x", "y"), "right")
    content = "asked,x,y,right\nWhat is cold?,fire,ice,y\nWhat is cold?,fire,ice,1\n"
    assert read(write("own.csv", content), named) == [COLD, COLD]
    row = {"text": "What is cold?", "choices": ["fire", "ice"], "answer": 1.0}
    assert read(write("number.jsonl", json.dumps(row))) == [COLD]
    content = "asked,1,2,right\nWhat is cold?,fire,ice,2.0\n"  # as pandas writes such a column
    assert read(write("gap.csv", content), Names("asked", ("1", "2"), "right")) == [COLD]
    row = {"asked": "What is cold?", "x": "fire", "y": "ice", "right": "y"}
    assert read(write("own.jsonl", json.dumps(row)), named) == [COLD]


def test_labels_that_are_one_number_are_told_apart_by_their_spelling(write):
    choices = [{"text": text, "label": label} for text, label in (("fire", "1.1"), ("ice", "1.10"))]
    row = {"question": {"stem": "What is cold?", "choices": choices}, "answerKey": "1.10"}
    assert read(write("two.jsonl", json.dumps(row))) == [COLD]
    path = write("number.jsonl", json.dumps(row | {"answerKey": 1.1}))
    with pytest.raises(DataError, match="must be one of 1.1, 1.10, or its place"):
        read_choices(path)


@pytest.mark.parametrize(
    "line, message",
    [
        ("Who?,a,b,,,C", "the right choice must be one of A, B, or its place from 0; found 'C'"),
        ("Who?,a,b,,,4", "the right choice must be one of A, B, or its place from 0; found '4'"),
        ("Who?,a,,c,,A", "the choice B is empty, and others follow"),
        ("Who?,a,,,,A", "there must be two choices at least; found 1"),
        ("  ,a,b,,,A", "the text is blank"),
    ],
)
def test_a_row_that_can_not_be_used_is_a_line_and_may_be_left_out(write, line, message):
    path = write("arc.csv", f"{ARC}{line}\n")
    with pytest.raises(DataError) as error:
        read_choices(path)
    assert str(error.value) == f"{path}, line 4: {message}. With --skip-bad true it is left out."
    rows, [reason] = read_choices(path, skip_bad=True)
    assert len(rows) == 2 and message in reason


@pytest.mark.parametrize("row, name", [("~,a,b,,,A", "text"), ("Who?,a,~,,,A", "choice B")])
def test_a_row_with_a_text_of_no_token_may_be_left_out(write, row, name):
    path = write("a.csv", f"question,A,B,C,D,answer\nWhy?,a,b,,,A\n{row}\n")
    rows, [reason] = read_choices(path, skip_bad=True, has_token=lambda text: text != "~")
    assert len(rows) == 1
    assert reason == f"{path}, line 3: the {name} has no token: '~'."


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "text,label\na,b\n", "no columns of choices, .*; name them, of text, label"),
        ("a.csv", "question,A,B\na,b,c\n", "there is no column 'answer'"),
        ("a.jsonl", '{"text": "a", "choices": "b", "answer": 1}', "line 1: expected {.text., .cho"),
        ("a.jsonl", '{"text": "a", "choices": ["b", 1], "answer": 1}', "line 1: expected {.text"),
        ("a.jsonl", '{"text": "a", "choices": ["b", "c"]}', "line 1: expected {.text., .choices"),
        (
            "a.jsonl",
            json.dumps({**ARC_ROW, "choices": {"text": ["fire", "ice"], "label": ["A"]}}),
            "line 1: expected .* ARC: .question., .choices.: {.text., .label.}, .answerKey., or",
        ),
        (
            "a.jsonl",
            json.dumps({**SWAG_ROW, "label": -1}),
            "line 1: .* one of ending0, ending1, ending2, ending3, or its place from 0; found '-1'",
        ),
        (
            "a.jsonl",
            json.dumps({name: own for name, own in SWAG_ROW.items() if name != "label"}),
            "line 1: expected .* SWAG: .sent1., .sent2., .ending0., .label.; or",
        ),
        ("a.csv", "question,A,B,answer\n", "there is no example in it"),
        ("a.csv", "question,A,B,answer\na,b,c,D\n", "no row in it that can be used; the first"),
        ("a.txt", "question", "the name must end in .csv, .tsv, .jsonl"),
    ],
)
def test_a_file_of_another_form_is_refused(write, name, content, message):
    with pytest.raises(DataError, match=message):
        read_choices(write(name, content), skip_bad=True)


@pytest.mark.parametrize(
    "header, names, message",
    [
        ("text,label", Names(), "there are no columns of choices, .*; name them by --own, of text"),
        ("question,A,B", Names(), "no column 'answer'; there are .*; --right chooses it.$"),
        ("asked,A,B,answer", Names(), "no column 'text'; there are .*; --text chooses it.$"),
        ("text,A,answer", Names(choices=("A", "C")), "no column 'C'; .*; --own chooses it.$"),
    ],
)
def test_a_missing_column_names_the_option_that_chooses_it(write, header, names, message):
    path = write("a.csv", f"{header}\n")
    with pytest.raises(DataError, match=message):
        read_choices(path, names, options=NameOptions("--text", "--own", "--right"))


@pytest.mark.parametrize(
    "name, count, sizes",
    [("swag-sample/swag.csv", 11, {4}), ("arc/arc_easy_train.csv", 2147, {3, 4})],
)
def test_public_files_are_read_as_they_are(name, count, sizes):
    rows, left_out = read_choices(public_data(name))
    assert (len(rows), left_out) == (count, [])
    assert {len(row.choices) for row in rows} == sizes

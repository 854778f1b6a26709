"""SQuAD's files: what is read, and what is refused in a line."""

import json
import random

import pytest

from seqkeras.data.squad import Answer, read_questions
from seqkeras.data.texts import DataError
from tests.conftest import public_data

CONTEXT = "Ein Café 🚀 in Köln heißt 北京."


def squad(rows, context=CONTEXT, title="Cafés"):
    """A file's content of one paragraph."""
    qas = [{"id": f"q{place}", "question": "Was?", **row} for place, row in enumerate(rows)]
    return of_data({"title": title, "paragraphs": [{"context": context, "qas": qas}]})


def of_data(*articles):
    return json.dumps({"data": articles}, ensure_ascii=False)


def answer(text, start):
    return {"answers": [{"text": text, "answer_start": start}]}


def test_questions_have_several_answers_or_none(write):
    several = {"answers": [{"text": "Café", "answer_start": 4}, {"text": "é", "answer_start": 7}]}
    none = {"is_impossible": True, "answers": [], "plausible_answers": [{"text": "in"}]}
    path = write("dev.json", "\ufeff" + squad([several, none]))
    (first, second), left_out = read_questions(path)
    assert first.answers == (Answer("Café", 4), Answer("é", 7)) and second.answers == ()
    assert (first.question, first.context, left_out) == ("Was?", CONTEXT, [])
    assert first.where == f"{path}, article 1 (Cafés), paragraph 1, question 1 (q0)"


def test_json_lines_of_hugging_face_hold_the_same(write):
    rows = [
        {"answers": {"text": ["Köln"], "answer_start": [CONTEXT.index("Köln")]}},
        {"answers": {"text": [], "answer_start": []}},
    ]
    lines = [json.dumps({"question": "Wo?", "context": CONTEXT, **row}) for row in rows]
    path = write("dev.jsonl.gz", "\n".join(lines))
    first, second = read_questions(path).questions
    assert [own.text for own in first.answers] == ["Köln"] and second.answers == ()
    assert second.where == f"{path}, line 2"


@pytest.mark.parametrize(
    "offsets, encoding, size", [("bytes", "utf-8", 1), ("utf-16", "utf-16-le", 2)]
)
def test_offsets_of_other_units_are_recognised_and_read(write, offsets, encoding, size):
    draw = random.Random(size)
    for _ in range(50):
        context = "".join(draw.choices("aé🚀北 ", k=23)) + "x"
        start = draw.randrange(len(context))
        text = context[start : draw.randint(start + 1, len(context))]
        if not text.strip():
            continue
        counted = len(context[:start].encode(encoding)) // size
        path = write("dev.json", squad([answer(text, counted)], context))
        [question] = read_questions(path, offsets).questions
        assert question.answers == (Answer(text, start),)
    counted = len("Ein Café 🚀 in ".encode(encoding)) // size
    path = write("dev.json", squad([answer("Köln", counted)]))
    with pytest.raises(DataError, match=f"counted in code points; .*: choose --offsets {offsets}"):
        read_questions(path)


@pytest.mark.parametrize(
    "row, message",
    [
        (answer("Bonn", 3), "the answer 'Bonn' is not at answer_start 3, nor elsewhere"),
        (answer("Köln", 3), "the answer 'Köln' is not at answer_start 3; it stands at 14"),
        (answer(" ", 3), "an answer is blank"),
        (answer("Köln", "14"), "'answer_start' of the answer 'Köln' must be a number from 0"),
        (answer("Köln", -1), "'answer_start' of the answer 'Köln' must be a number from 0; found"),
        (answer("Köln", 14) | {"question": "\u200b\x07"}, "the question is blank"),
        ({"answers": []}, "there is no answer; a question that has none says so by"),
        ({"is_impossible": "no", "answers": []}, "'is_impossible' must be true or false"),
        (answer("Köln", 14) | {"question": " "}, "the question is blank"),
        (answer("Köln", 14) | {"question": "\ud800"}, "the question holds half of a character"),
        ({"answers": [{"answer_start": 1}]}, "expected an object in which 'text' is a text"),
    ],
)
def test_a_question_that_can_not_be_used_is_a_line_and_may_be_left_out(write, row, message):
    qas = [{"question": "Was?", **each} for each in (answer("Köln", 14), {"id": "q1", **row})]
    content = {"data": [{"title": "", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]}
    path = write("dev.json", json.dumps(content))
    with pytest.raises(DataError, match="With --skip-bad true it is left out") as error:
        read_questions(path)
    place = f"{path}, article 1, paragraph 1, question 2 (q1)"
    assert str(error.value).startswith(f"{place}: {message}")
    [kept], [reason] = read_questions(path, skip_bad=True)
    assert kept.answers == (Answer("Köln", 14),) and message in reason


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.json", "[1", r"not JSON: .* \(char 2\).$"),
        (
            "a.json",
            '{"question": "a"}\n{"question": "b"}\n',
            "not JSON: Extra data.*; a file of JSON lines must be named .jsonl.$",
        ),
        ("a.json", "[]", "expected an object in which 'data' is a list"),
        ("a.json", of_data({"title": "T"}), "article 1 .T.: .* 'paragraphs' is a list"),
        ("a.json", of_data({"paragraphs": [{"qas": []}]}), "paragraph 1: .* 'context' is a text"),
        ("a.json", of_data({"paragraphs": [{"context": "c", "qas": [1]}]}), "question 1: "),
        ("a.json", of_data(), "there is no question in it"),
        ("a.json", squad([answer("Bonn", 0)]), "no question in it that can be used; the first: "),
        ("a.jsonl", '{"question": "a"}', "line 1: expected an object in which 'context' is a text"),
        (
            "a.jsonl",
            '{"question": "a", "context": "b", "answers": {"text": ["b"], "answer_start": []}}',
            "line 1: needs one 'answer_start' for each 'text'; found 1 and 0",
        ),
        ("a.csv", "a", "the name must end in .json or .jsonl"),
    ],
)
def test_a_file_of_another_form_is_refused(write, name, content, message):
    with pytest.raises(DataError, match=message):
        read_questions(write(name, content), skip_bad=True)


@pytest.mark.parametrize(
    "name, count, without",
    [
        ("squad1-subset/dev-v1.1-subset.json", 490, 0),
        ("squad2-subset/dev-v2.0-subset.json", 1160, 579),
        ("xquad/xquad.zh.json", 967, 0),
    ],
)
def test_public_files_are_read_as_they_are(name, count, without):
    questions, left_out = read_questions(public_data(name))
    assert (len(questions), left_out) == (count, [])
    assert sum(not question.answers for question in questions) == without
    for question in questions:
        for text, start in question.answers:
            assert question.context[start : start + len(text)] == text

"""Question answering of a user's file: what it learns, leaves and refuses."""

import json
import os
import random
from pathlib import Path

import pytest

from seqkeras import serving
from seqkeras.data.squad import Answer, read_questions
from seqkeras.metrics import squad_exact_match, squad_f1, squad_scores
from seqkeras.serving.pipelines.answer import Settings
from seqkeras.serving.pipelines.questions import SubwordQuestions, WordQuestions
from seqkeras.tokenizers import CharacterTable, WordTable, read_vocabulary, word_piece
from seqkeras.training.parts.answer_windows import places_in_windows, tokens_of
from tests.conftest import long_fixture
from tests.training.commands import (
    exported,
    printed,
    refusal,
    refused_files,
    scores_of,
    scores_of_both,
)
from tests.training.questions import VOCABULARY, as_squad, encoder_folder, questions, write

SMALL = "--batch-size 10 --learning-rate 5e-3 --looks 2 --tensorboard false".split()
WINDOWS = "--max-length 21 --stride 5 --question-length 9 --answer-length 5".split()


@long_fixture
def trained(tmp_path_factory):
    """An encoder, a run on questions of which some have no answer, and its bundle."""
    folder = tmp_path_factory.mktemp("answers")
    files = [write(folder / "train.json", questions(250, 0, without=0.3)), "--validation"]
    files.append(write(folder / "dev.jsonl", questions(41, 1, without=0.3, filler=20)))
    encoder = ["--pretrained", encoder_folder(folder / "encoder"), "--passes", "6"]
    out = ["--out", str(folder / "run")]
    printed("question-answering", *files, *encoder, *SMALL, *WINDOWS, *out)
    exported(folder)
    return folder


def test_answers_and_their_absence_are_learned_over_several_windows(trained):
    scores = scores_of(trained / "run")
    assert scores["questions"] == 41 and scores["f1"] > 0.9
    assert scores["with_answer"]["f1"] > 0.9 and scores["without_answer"]["f1"] > 0.9
    assert scores["best_f1"] == scores["f1"]  # the threshold is tuned on the same questions


def test_the_threshold_travels_from_the_run_to_its_bundle(trained):
    record = json.loads((trained / "run/run.json").read_text())
    threshold = record["settings"]["no_answer_threshold"]
    pipeline = serving.load(trained / "bundle")
    assert pipeline.manifest.settings["no_answer_threshold"] == threshold != 0
    asked = ("Where does Ada live?", "the dog ran by . Ada lives in New York a dog")
    answer = pipeline(asked)
    assert answer.text == "New York" and answer.margin > threshold
    assert asked[1][answer.start : answer.end] == "New York"
    assert pipeline(asked, no_answer_threshold=answer.margin + 1).text == ""
    assert pipeline(("Where does nobody live?", asked[1])).text == ""


def test_run_and_bundle_have_the_same_scores_on_a_file(trained, tmp_path):
    data = tmp_path / "test.json"
    rows = questions(53, 2, without=0.5, filler=30)
    write(data, rows)
    scores = scores_of_both(trained, data)
    assert scores["questions"] == 53
    pipeline = serving.load(trained / "bundle")
    texts = [pipeline((question, context)).text for question, context, _ in rows]
    expected = squad_scores(texts, [answer for *_, answer in rows])
    assert {name: scores[name] for name in expected} == expected


def test_questions_that_all_have_an_answer_are_always_answered(trained, tmp_path):
    train = write(tmp_path / "train.json", questions(40, 3))
    out = tmp_path / "run"
    encoder = ["--pretrained", str(trained / "run"), "--held-out", "0.2", "--passes", "1"]
    printed("question-answering", train, *encoder, *SMALL, *WINDOWS, "--out", out)
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["no_answer"] is False and "no_answer_threshold" not in settings
    scores = scores_of(out)
    assert set(scores) == {"questions", "exact_match", "f1"} and scores["f1"] > 0.9


@pytest.mark.long
def test_bidaf_learns_from_the_file_alone_and_is_served(tmp_path):
    files = [write(tmp_path / "train.json", questions(120)), "--validation"]
    files.append(write(tmp_path / "dev.jsonl", questions(23, 1)))
    sizes = "--units 7 --embedding-dim 11 --character-filters 5 --character-dim 3 --passes 6"
    options = ["--model", "bidaf", *sizes.split(), *SMALL, "--learning-rate", "0.03"]
    printed("question-answering", *files, *options, "--out", tmp_path / "run")
    assert scores_of(tmp_path / "run")["f1"] > 0.9
    exported(tmp_path)
    scores_of_both(tmp_path, tmp_path / "dev.jsonl")


CONTEXT = "the sun was out . 北京 ada lives in new york and a dog ran by the sun . é bo lives"


@pytest.mark.parametrize("room", [1, 3, 7, 40])
def test_the_answer_is_where_a_window_holds_it_whole_and_else_at_the_first_token(room):
    tokenizer = word_piece(VOCABULARY, lowercase=True)
    settings = Settings("s", "e", window=room + 6, stride=2, question_length=3)
    read = SubwordQuestions(tokenizer, 99, settings).read
    draw = random.Random(room)
    for _ in range(50):
        start = draw.randrange(len(CONTEXT))
        text = CONTEXT[start : draw.randint(start + 1, len(CONTEXT))]
        row = read("where does ada", CONTEXT, "")
        span = tokens_of(row, Answer(text, start))
        if not text.strip():
            assert span is None
            continue
        offsets, places = tokenizer.analyze(CONTEXT).offsets[1:-1], range(start, start + len(text))
        own = [n for n, (begin, end) in enumerate(offsets) if {*range(begin, end)} & {*places}]
        if not own:  # é is not in the vocabulary, and is [UNK]; what is left is white space
            assert span is None
            continue
        assert span == (own[0], own[-1])
        whole = 0
        for number, (first, last) in enumerate(places_in_windows(row, span)):
            encoding, held = row.windows.rows[number], row.windows.tokens[number]
            inside = [encoding.offsets[place] for place in held]
            if offsets[own[0]] in inside and offsets[own[-1]] in inside:
                assert encoding.offsets[first] == offsets[own[0]]
                assert encoding.offsets[last] == offsets[own[-1]]
                whole += 1
            else:
                assert (first, last) == (0, 0)
        assert whole or len(own) > 1
        assert {*places_in_windows(row, None)} == {(0, 0)}


def test_an_answer_behind_the_last_word_that_is_read_is_none():
    words = WordTable.learn(CONTEXT.split())
    questions_of_words = WordQuestions(
        words, CharacterTable.learn([CONTEXT]), 4, Settings("s", "e")
    )
    row = questions_of_words.read("where", CONTEXT, "", truncate=True)
    assert tokens_of(row, Answer("sun was", 4)) == (1, 2)
    assert tokens_of(row, Answer("out .", 12)) is None
    assert tokens_of(row, Answer("ada", CONTEXT.index("ada"))) is None


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return encoder_folder(tmp_path_factory.mktemp("models") / "encoder")


def changed(rows, **answer):
    content = as_squad(rows)
    content["data"][0]["paragraphs"][0]["qas"][0]["answers"][0] |= answer
    return json.dumps(content)


SQUAD = json.dumps(as_squad(questions(20)))
HALF = json.dumps(as_squad(questions(20, without=0.5)))
TUNED = "--pretrained {encoder} --batch-size 5 " + " ".join(WINDOWS)
NO_ROOM = "settings.window and limits.source_length must leave room"


test_options_that_do_not_go_together_are_one_line = refused_files(
    "question-answering",
    "train.json",
    (SQUAD, "", "--pretrained is missing: the folder of an encoder; or choose --model bid"),
    (SQUAD, "--model bidaf --frozen true", "--frozen needs --pretrained"),
    (SQUAD, f"{TUNED} --model bidaf", "--model bidaf learns from FILE alone"),
    (SQUAD, f"{TUNED} --units 3", "--units: --pretrained brings its own"),
    (SQUAD, "--pretrained {encoder} --max-length 64", "must leave room for a context"),
    (SQUAD, "--offsets lines", "'lines' is not one of 'characters', 'bytes', 'utf-16'"),
    status=2,
)
test_what_can_not_be_learned_from_is_one_line = refused_files(
    "question-answering",
    "train.json",
    (SQUAD, "--pretrained {encoder} --question-length 36", f"--question-length: {NO_ROOM}"),
    (changed(questions(20), text="Rome"), TUNED, "question 1 (q0): the answer 'Rome'"),
    (SQUAD, f"{TUNED} --question-length 3", "no validation question has from 1 to --questi"),
    (SQUAD, f"{TUNED} --max-length 99", "has 37 positions"),
    (json.dumps(as_squad(questions(1))), TUNED, "there is one context only, and nothing to"),
    (json.dumps(as_squad(questions(9, without=1.0))), TUNED, "no question has an answer, so"),
    (HALF, "--model bidaf", "--model bidaf always answers, and this question has no answer"),
)


def test_questions_that_can_not_be_used_are_left_out_and_counted(trained, tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(changed(questions(20), text="Rome"), encoding="utf-8")
    lines = printed("evaluate", trained / "run", "--data", path, "--skip-bad", "true")
    assert any("1 question is left out; the first: " in line for line in lines)
    assert scores_of_both(trained, path, "--skip-bad", "true")["questions"] == 19


@pytest.mark.parametrize("name", ["question", "context"])
def test_a_text_of_no_token_is_named(name, encoder, tmp_path):
    rows = [{"question": "who", "context": f"Ada {row}", "answers": []} for row in range(4)]
    rows[2][name] = "\ufffd"
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    given = ["question-answering", path, "--pretrained", encoder]
    line = refusal(*given, out=tmp_path / "run")
    assert f"{path}, line 3: the {name} has no token: " in line
    assert line.endswith("With --skip-bad true it is left out.")


@pytest.mark.skipif("SEQKERAS_DATA" not in os.environ, reason="needs the public data sets")
@pytest.mark.parametrize(
    "name, vocabulary",
    [
        ("xquad/xquad.zh.json", "bert-base-chinese-vocab.txt"),
        ("xquad/xquad.en.json", "bert-base-uncased-vocab.txt"),
        ("squad2-subset/dev-v2.0-subset.json", "bert-base-uncased-vocab.txt"),
    ],
)
def test_the_tokens_of_public_answers_give_them_back_in_every_language(name, vocabulary):
    data = Path(os.environ["SEQKERAS_DATA"])
    tokenizer = word_piece(read_vocabulary(data / "vocab-bert" / vocabulary), lowercase=True)
    read = SubwordQuestions(tokenizer, 384, Settings("s", "e")).read
    asked, _ = read_questions(data / name)
    texts, targets, windows = [], [], 0
    for question in asked:
        row = read(question.question, question.context, "", truncate=True)
        for answer in question.answers[:1]:
            span = tokens_of(row, answer)
            texts.append(question.context[row.offsets[span[0]][0] : row.offsets[span[1]][1]])
            targets.append(answer.text)
            held = [*places_in_windows(row, span)]
            windows += len(held)
            assert any(places != (0, 0) for places in held) or span[1] - span[0] > 128
    assert squad_f1(texts, targets) > 0.99 and squad_exact_match(texts, targets) > 0.97
    assert windows > len(targets)

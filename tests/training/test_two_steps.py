"""Tasks whose learning is tested by `make test-all`: two steps make a run that can be exported."""

import json

import pytest

from seqkeras.training.__main__ import main
from tests.conftest import others_long
from tests.training.exams import exam
from tests.training.exporting import refusals_of_run
from tests.training.questions import encoder_folder, questions, write
from tests.training.test_bert_pretraining import TINY as TINY_BERT
from tests.training.test_bert_pretraining import text_file as documents
from tests.training.test_bilm import TINY as TINY_BILM
from tests.training.test_language_model import text_file


def choices(folder):
    return [exam(folder / "exam.csv", 20), "--pretrained", encoder_folder(folder / "encoder")]


def answers(folder):
    file = write(folder / "questions.json", questions(20))
    return [file, "--pretrained", encoder_folder(folder / "encoder"), "--question-length", "9"]


def pretraining(folder):
    return [documents(folder / "text.txt", 9), *TINY_BERT]


def both_ways(folder):
    return [text_file(folder / "text.txt"), *TINY_BILM]


TASKS = {
    "multiple-choice": choices,
    "question-answering": answers,
    "bert-pretraining": pretraining,
    "bilm": both_ways,
}


@pytest.mark.parametrize("task", others_long(TASKS))
def test_two_steps_make_a_run_that_export_takes(task, tmp_path):
    run = tmp_path / "run"
    options = "--max-steps 2 --looks 1 --tensorboard false".split()
    assert main([task, *TASKS[task](tmp_path), *options, "--out", str(run)]) == 0
    assert refusals_of_run(run) == []
    assert json.loads((run / "scores.json").read_text())
    assert len((run / "history.csv").read_text().splitlines()) == 2

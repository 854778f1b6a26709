"""The default model, trained whole, on dates that people wrote."""

import keras
import pytest

from seqkeras.runs import RunFiles, RunRecord
from seqkeras.tokenizers import CharacterTable
from seqkeras.training.answering import answerer
from tests.conftest import run_python
from tests.training.dates_as_written import DATES_AS_WRITTEN


@pytest.mark.long
def test_nearly_all_dates_that_people_wrote_are_read(tmp_path):
    finished = run_python("-m", "training", "dates", "--out", tmp_path / "dates")
    assert finished.returncode == 0, finished.stderr
    model = keras.models.load_model(tmp_path / "dates/model.keras")
    record = RunRecord.read(tmp_path / "dates")
    tables = {
        role: CharacterTable.from_file(tmp_path / "dates" / path)
        for role, path in record.tokenizers.items()
    }
    texts, expected = zip(*DATES_AS_WRITTEN)
    answers = answerer(RunFiles(record, tables, [], {}))(model, texts)
    found = zip(texts, [answer.text for answer in answers], expected)
    wrong = [each for each in found if each[1] != each[2]]
    assert len(wrong) <= 4, wrong

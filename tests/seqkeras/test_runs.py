import re

import pytest

from seqkeras.runs import RECORD, RunError, RunRecord

FIELDS = {
    "task": "dates",
    "pipeline": "Translate",
    "limits": {"source_length": 53, "target_length": 11},
    "decoding": {"beam_size": 3},
    "text_prefix": None,
}


def test_a_record_is_read_as_it_was_written(tmp_path):
    record = RunRecord(**FIELDS)
    record.write(tmp_path)
    assert RunRecord.read(tmp_path) == record
    assert RunRecord.read(str(tmp_path)) == record


def test_a_folder_that_is_missing_is_refused(tmp_path):
    folder = tmp_path / "dates"
    message = (
        f"{folder}: no such run folder; make one with `python -m training TASK --out {folder}`."
    )
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        RunRecord.read(folder)


def test_a_run_that_is_not_finished_is_refused(tmp_path):
    message = re.escape(
        f"{tmp_path}: not a finished run, run.json is missing; the training command that began it "
        "goes on where it was."
    )
    with pytest.raises(RunError, match=f"^{message}$"):
        RunRecord.read(tmp_path)


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "Expecting value"),
        (b'{"task": "dates"', "Expecting ',' delimiter"),
        (b'{"task": "dates"}', "missing 4 required positional arguments"),
        (b'{"weights": 1}', "unexpected keyword argument 'weights'"),
        (b"[1, 2]", "must be a mapping, not list"),
        (b"\xff\xfe", "can't decode byte"),
    ],
    ids=["empty", "cut", "too few fields", "other fields", "a list", "no UTF-8"],
)
def test_what_is_no_record_is_refused(tmp_path, content, reason):
    (tmp_path / RECORD).write_bytes(content)
    message = rf"^{re.escape(str(tmp_path / RECORD))}: not a run record: .*{reason}.*; train again"
    with pytest.raises(RunError, match=message):
        RunRecord.read(tmp_path)

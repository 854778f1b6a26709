import re

import pytest
from filelock import Timeout

from seqkeras.locking import locked
from seqkeras.runs import OPTIONS, RECORD, RunError, RunRecord

FIELDS = {
    "task": "dates",
    "pipeline": "Translate",
    "limits": {"source_length": 53, "target_length": 11},
    "decoding": {"num_beams": 3},
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
        f"{folder}: no such run folder; make one of your model with `seqkeras.export.save_run`, or "
        f"train one with `seqkeras train TASK --out {folder}`."
    )
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        RunRecord.read(folder)


def test_a_run_that_is_not_finished_is_refused(tmp_path):
    message = re.escape(
        f"{tmp_path}: not a finished run, run.json is missing; the training command that began it "
        "goes on where it was."
    )
    (tmp_path / OPTIONS).write_text("{}")
    with pytest.raises(RunError, match=f"^{message}$"):
        RunRecord.read(tmp_path)


def test_a_folder_that_no_training_began_is_no_run(tmp_path):
    (tmp_path / "model.keras").write_bytes(b"mine")
    message = re.escape(
        f"{tmp_path}: no run folder, run.json is missing; make one of your model with "
        "`seqkeras.export.save_run`, or train one with `seqkeras train TASK --out RUN`."
    )
    with pytest.raises(RunError, match=f"^{message}$"):
        RunRecord.read(tmp_path)


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "Expecting value"),
        (b'{"task": "dates"', "Expecting ',' delimiter"),
        (b'{"task": "dates"}', "pipeline is missing; limits is missing; decoding is missing"),
        (b'{"weights": 1}', "weights is unknown"),
        (b"[1, 2]", "it must be an object; received"),
        (b"\xff\xfe", "can't decode byte"),
    ],
    ids=["empty", "cut", "too few fields", "other fields", "a list", "no UTF-8"],
)
def test_what_is_no_record_is_refused(tmp_path, content, reason):
    (tmp_path / RECORD).write_bytes(content)
    message = rf"^{re.escape(str(tmp_path / RECORD))}: not a run record: .*{reason}.*. Train again"
    with pytest.raises(RunError, match=message):
        RunRecord.read(tmp_path)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), Timeout(".run.lock")])
def test_a_folder_where_no_lock_can_be_made_is_refused_by_its_name(error, tmp_path, monkeypatch):
    def acquire(lock):
        raise error

    monkeypatch.setattr("seqkeras.locking.FileLock.acquire", acquire)
    reason = error.strerror or "no file can be made beside it"
    with pytest.raises(OSError) as refused, locked(tmp_path / "new" / "run"):
        pass
    assert str(refused.value) == (
        f"{tmp_path / 'new/run'}: can not be written ({reason}); choose another folder."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [101, 1000, 100_000])
def test_a_record_that_nests_too_deep_is_refused(tmp_path, depth):
    (tmp_path / RECORD).write_text('{"limits": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(RunError, match="not a run record: it is nested over 100 levels deep"):
        RunRecord.read(tmp_path)

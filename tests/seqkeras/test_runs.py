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


WAYS = "`seqkeras.export.save_run`, or train one with `seqkeras train TASK --out"


@pytest.mark.parametrize(
    "file, message",
    [
        (None, f"dates: no such run folder; make one of your model with {WAYS} "),
        (
            OPTIONS,
            "dates: not a finished run, run.json is missing; the training command that began it "
            "goes on where it was.",
        ),
        (
            "model.keras",
            f"no run folder, run.json is missing; make one of your model with {WAYS} R",
        ),
    ],
)
def test_a_folder_without_a_record_is_refused(file, message, tmp_path):
    folder = tmp_path / "dates"
    if file:
        folder.mkdir()
        (folder / file).write_text("{}")
    with pytest.raises(RunError, match=f"^{re.escape(str(folder))}.*") as refused:
        RunRecord.read(folder)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "Expecting value"),
        (b'{"task": "dates"', "Expecting ',' delimiter"),
        (b'{"task": "dates"}', "pipeline is missing; limits is missing; decoding is missing"),
        (b'{"weights": 1}', "weights is unknown"),
        (b"[1, 2]", "it must be an object; received"),
        (b"\xff\xfe", "can't decode byte"),
        (b'{"limits": ' + b"[" * 101 + b"]" * 101 + b"}", "it is nested over 100 levels deep"),
    ],
    ids=["empty", "cut", "too few fields", "other fields", "a list", "no UTF-8", "deep"],
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

import json

import pytest

from seqkeras import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "model.keras"
    with files.written_aside(path) as aside:
        aside.write_text("whole")
        assert aside.suffix == ".keras"  # Keras looks at it
        assert aside.parent == tmp_path  # a rename is whole only within one file system
        assert not path.exists()
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["model.keras"]


def test_a_file_stays_as_it_was_when_writing_fails(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text("before")
    with pytest.raises(OSError, match="disk full"), files.written_aside(path) as aside:
        aside.write_text("ha")
        raise OSError("disk full")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["scores.json"]


def test_json_is_written_in_its_order_and_in_its_own_letters(tmp_path):
    path = tmp_path / "run.json"
    files.write_json(path, {"z": "é月", "a": [1]})
    assert path.read_text(encoding="utf-8").startswith('{\n  "z": "é月",\n  "a"')
    assert json.loads(path.read_text(encoding="utf-8")) == {"z": "é月", "a": [1]}

"""A folder is replaced whole, or not at all."""

from pathlib import Path

import pytest

from export.replacing import written_aside


def accept():
    pass


def write(folder, text):
    with written_aside(folder, accept) as aside:
        (aside / "text").write_text(text)


def test_a_folder_appears_whole_and_is_replaced_whole(tmp_path):
    folder = tmp_path / "a[1]" / "b*"
    for text in ("old", "new"):
        write(folder, text)
        assert (folder / "text").read_text() == text
        assert [path.name for path in folder.parent.iterdir()] == ["b*"]


def test_an_error_leaves_what_was_there_and_no_new_parent(tmp_path):
    write(tmp_path / "kept", "old")
    for folder in (tmp_path / "kept", tmp_path / "new" / "deep"):
        with pytest.raises(KeyError), written_aside(folder, accept) as aside:
            (aside / "text").write_text("new")
            raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "text").read_text() == "old"


def test_an_error_between_the_two_renames_puts_the_old_folder_back(tmp_path, monkeypatch):
    write(tmp_path / "kept", "old")
    rename = Path.rename

    def fail_for_the_new_one(path, target):
        if ".partial-" in path.name:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "kept", "new")
    assert (tmp_path / "kept" / "text").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_the_check_is_made_again_before_the_swap(tmp_path):
    folder = tmp_path / "taken"

    def must_be_free():
        if folder.exists():
            raise FileExistsError(folder)

    with pytest.raises(FileExistsError), written_aside(folder, must_be_free):
        folder.mkdir()
        (folder / "letters.txt").write_text("mine")
    assert (folder / "letters.txt").read_text() == "mine"


def test_leftovers_with_the_own_process_id_are_orphans(tmp_path):
    folder = tmp_path / "a"
    with pytest.raises(KeyError), written_aside(folder, accept) as aside:
        raise KeyError
    aside.mkdir()
    write(folder, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]

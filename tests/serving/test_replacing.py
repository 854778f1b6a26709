import os
import stat
import threading

import pytest

from seqkeras.serving.replacing import replacement


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text("old")
    return path


def test_a_file_is_replaced_when_the_block_ends(file):
    with replacement(str(file)) as write:
        write("ne")
        assert file.read_text() == "old"
        write("w")
    assert file.read_text() == "new"
    assert os.listdir(file.parent) == ["figures.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_the_file_is_as_it_was(file, error):
    with pytest.raises(error), replacement(str(file)) as write:
        write("half")
        raise error
    assert file.read_text() == "old"
    assert os.listdir(file.parent) == ["figures.json"]


def test_a_new_file_has_the_rights_that_any_file_gets(tmp_path):
    with replacement(str(tmp_path / "new")) as write:
        write("é")
    assert (tmp_path / "new").read_text(encoding="utf-8") == "é"
    (tmp_path / "plain").touch()
    modes = {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("new", "plain")}
    assert len(modes) == 1


def test_a_link_stays_a_link(file):
    link = file.with_name("link")
    link.symlink_to(file)
    with replacement(str(link)) as write:
        write("new")
    assert link.is_symlink()
    assert file.read_text() == "new"


def test_a_pipe_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with replacement(str(pipe)) as write:
        write("new")
    reader.join()
    assert read == ["new"]


def test_without_a_path_nothing_is_written():
    with replacement(None) as write:
        write("new")


def test_what_can_not_be_written_is_refused_before_the_block(tmp_path):
    missing = tmp_path / "none" / "x"
    with pytest.raises(FileNotFoundError) as caught, replacement(str(missing)):
        pytest.fail("the block ran")
    assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError), replacement(str(tmp_path)):
        pytest.fail("the block ran")

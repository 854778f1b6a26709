"""A folder is replaced whole, or not at all."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seqkeras import folders
from seqkeras.exchanging import exchange
from seqkeras.folders import written_aside
from seqkeras.locking import InUseError
from tests.conftest import CHECKOUT
from tests.killing import killed_at_every_moment

REPLACE = """
from pathlib import Path

from seqkeras import folders

{patch}
sys.addaudithook(die)
with folders.written_aside(Path({folder!r}), lambda: None) as aside:
    (aside / "deep").mkdir()
    (aside / "deep" / "text").write_text("new")
    (aside / "text").write_text("new")
"""
HOLD = """
import sys
from pathlib import Path

from seqkeras.folders import written_aside

with written_aside(Path(sys.argv[1]), lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""


def accept():
    pass


def write(folder, text):
    with written_aside(folder, accept) as aside:
        (aside / "text").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=[True, False], ids=["in a single step", "by two renames"])
def exchanges(request, monkeypatch):
    """With the system's call that exchanges two names, and where there is none."""
    if not request.param:
        monkeypatch.setattr(folders, "exchange", lambda first, second: False)
    return request.param


def test_a_folder_appears_whole_and_is_replaced_whole(exchanges, tmp_path):
    folder = tmp_path / "a[1]" / "b*"
    for text in ("old", "new"):
        write(folder, text)
        assert (folder / "text").read_text() == text
        assert names(folder.parent) == ["b*"]


def test_an_error_leaves_what_was_there_and_no_new_parent(exchanges, tmp_path):
    write(tmp_path / "kept", "old")
    for folder in (tmp_path / "kept", tmp_path / "new" / "deep"):
        with pytest.raises(KeyError), written_aside(folder, accept) as aside:
            (aside / "text").write_text("new")
            raise KeyError
    assert names(tmp_path) == ["kept"]
    assert (tmp_path / "kept" / "text").read_text() == "old"


def test_an_error_between_the_two_renames_puts_the_old_folder_back(tmp_path, monkeypatch):
    write(tmp_path / "kept", "old")
    rename = Path.rename

    def fail_for_the_new_one(path, target):
        if ".partial-" in path.name:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(folders, "exchange", lambda first, second: False)
    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "kept", "new")
    assert (tmp_path / "kept" / "text").read_text() == "old"
    assert names(tmp_path) == ["kept"]


def test_the_check_is_made_again_before_the_swap(tmp_path):
    folder = tmp_path / "taken"

    def must_be_free():
        if folder.exists():
            raise FileExistsError(folder)

    with pytest.raises(FileExistsError), written_aside(folder, must_be_free):
        folder.mkdir()
        (folder / "letters.txt").write_text("mine")
    assert (folder / "letters.txt").read_text() == "mine"


def test_two_folders_exchange_their_names(tmp_path):
    if sys.platform not in ("linux", "darwin"):
        pytest.skip("this system has no such call")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text(name)
    assert exchange(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "one" / "text").read_text() == "two"
    assert (tmp_path / "two" / "text").read_text() == "one"
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "none")


def test_killed_at_any_moment_the_folder_is_there_whole_and_the_next_writer_cleans_up(
    exchanges, tmp_path
):
    folder = tmp_path / "bundle"

    def prepare():
        shutil.rmtree(tmp_path)
        write(folder, "old")
        (folder / "deep").mkdir()
        (folder / "deep" / "text").write_text("old")

    patch = "" if exchanges else "folders.exchange = lambda first, second: False"
    code = REPLACE.format(folder=str(folder), patch=patch)
    seen = set()
    for _ in killed_at_every_moment(code, tmp_path, prepare):
        if folder.exists():
            texts = {path.read_text() for path in (folder / "text", folder / "deep" / "text")}
            assert len(texts) == 1  # never a mixture
            seen |= texts
        else:
            assert not exchanges  # a name is missing only where names can not be exchanged
            seen.add("none")
        with pytest.raises(KeyError), written_aside(folder, accept):
            raise KeyError
        assert (folder / "text").read_text() == (folder / "deep" / "text").read_text()
        assert names(tmp_path) == ["bundle"]
    assert seen == {"old", "new"} | ({"none"} if not exchanges else set())


def test_a_folder_that_another_process_writes_is_refused_with_its_process(tmp_path):
    folder = tmp_path / "bundle"
    command = [sys.executable, "-c", HOLD, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=CHECKOUT, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InUseError) as caught:
            write(folder, "mine")
        holder.stdin.close()
    assert str(caught.value) == (
        f"{folder}: process {holder.pid} writes it; wait until that process has ended, or choose "
        "another folder."
    )
    write(folder, "mine")
    assert names(tmp_path) == ["bundle"]


def test_the_lock_of_a_killed_process_holds_nobody_up(tmp_path):
    folder = tmp_path / "bundle"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    assert ".bundle.lock" in names(tmp_path)
    write(folder, "mine")
    assert names(tmp_path) == ["bundle"]

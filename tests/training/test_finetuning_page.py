"""docs/finetuning.md: its files of a few lines and its commands, from training to an answer."""

import contextlib
import io
import re
import shlex

import keras
import pytest

from seqkeras.__main__ import main
from seqkeras.models import Bert
from seqkeras.pretrained import save_hugging_face
from seqkeras.tokenizers import word_piece
from tests.conftest import CHECKOUT
from tests.training.pretrained_folders import SIZES, VOCABULARY

PAGE = (CHECKOUT / "docs/finetuning.md").read_text(encoding="utf-8")
FEW = ["--batch-size", "2"]  # rows there are; as the page says it


def shown_file(name):
    """The lines of a file that the page shows behind its name."""
    return re.search(rf"`{re.escape(name)}`.*?```\n(.*?)```", PAGE, re.DOTALL)[1]


def commands(name):
    """The commands of the page that train, export and ask a run of this name."""
    found = re.findall(rf"^seqkeras (.*(?:--out runs|bundles)/{name}\b.*)$", PAGE, re.MULTILINE)
    return [shlex.split(command) for command in found]


def printed(*arguments):
    """What a command prints, which must end well."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(output):
        assert main([*arguments]) == 0
    return output.buffer.getvalue().decode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with models/minilm, a small encoder of random weights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    keras.utils.set_random_seed(0)
    encoder = Bert(len(VOCABULARY), **SIZES, max_length=97)
    encoder.build(None)
    tokenizer = word_piece(VOCABULARY, lowercase=True)
    save_hugging_face(encoder, tmp_path / "models/minilm", tokenizers={"text": tokenizer})
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "file", "answer"),
    [
        ("reviews", "reviews.csv", r"(good|bad)\t0\.\d+\n"),
        ("pairs", "pairs.tsv", r"(same|other)\t0\.\d+\n"),
        ("similar", "similar.csv", r"-?\d+\.\d+\n"),
        ("names", "names.conll", r"Ada/\S+ lives/\S+ in/\S+ Oslo/\S+\n"),
        ("questions", "questions.jsonl", r".*\t0\.\d+\n"),
        ("exam", "exam.csv", r"a (cat|dog)\t0\.\d+\n"),
    ],
)
def test_a_few_lines_become_an_answer_by_the_commands_of_the_page(name, file, answer, folder):
    (folder / file).write_text(shown_file(file))
    train, bundle, ask = commands(name)
    printed(*train, *FEW)
    assert f"next: seqkeras predict bundles/{name} " in printed(*bundle)
    assert re.fullmatch(answer, printed(*ask))


@pytest.mark.long
def test_a_run_teaches_a_small_one_by_the_commands_of_the_page(folder):
    (folder / "reviews.csv").write_text(shown_file("reviews.csv"))
    printed(*commands("reviews")[0], *FEW)
    train, bundle, ask = commands("small")
    printed(*train, *FEW)
    printed(*bundle)
    assert re.fullmatch(r"(good|bad)\t0\.\d+\n", printed(*ask))


@pytest.mark.long
def test_several_tasks_at_once_become_answers_by_the_commands_of_the_page(folder):
    for name in ("reviews.csv", "names.conll", "tasks.toml"):
        (folder / name).write_text(shown_file(name))
    printed(*commands("both")[0], *FEW)
    for name in ("mood", "people"):
        printed(*commands(name)[0])
    assert re.fullmatch(r"Ada/\S+ lives/\S+ in/\S+ Oslo/\S+\n", printed(*commands("people")[1]))


def test_every_recipe_with_minilm_has_a_row():
    recipes = {path.stem for path in (CHECKOUT / "training/recipes").glob("*minilm.toml")}
    assert set(re.findall(r"^\| `([\w-]+-minilm)` \|", PAGE, re.MULTILINE)) == recipes

"""Pages that no other test follows: what they show runs as it is shown, on small models."""

import io
import re
import shlex
import sys

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.models import Transformer
from seqkeras.tokenizers import word_piece
from tests import zoo
from tests.journeys.pages import commands, page_of, printed, shown
from tests.training.pretrained_folders import VOCABULARY, tiny_bert

REVIEWS = "text,label\n" + "a fine film,high\na dull film,low\na warm story,middle\n" * 4
FEW = ["--max-steps", "2", "--baselines", "false"]


def run_scripts(page, names):
    """Run the scripts of a page, which find and leave their names in a dictionary."""
    scripts = [text for kind, text in shown(page) if kind == "python"]
    assert scripts
    for script in scripts:
        exec(compile(script, "page", "exec"), names)


@pytest.fixture
def reviews(folder):
    """A folder with two files of labelled texts, runs/reviews, and its bundle with int8."""
    for name in ("reviews.csv", "test.csv"):
        (folder / name).write_text(REVIEWS, encoding="utf-8")
    train = "train classification reviews.csv --batch-size 2 --out runs/reviews"
    printed([*train.split(), *FEW])
    export_it = "export runs/reviews bundles/reviews --precision int8 --tolerance 1"
    printed([*export_it.split(), "--no-saved-models"])
    return folder


@pytest.mark.parametrize("name", ["evaluate", "size", "tune"])
def test_the_commands_of_a_page_of_training_run(name, reviews):
    found = commands(page_of(f"training/{name}.md"))
    assert found
    for line in found:
        few = ["--trials", "2", *FEW] if " tune " in line else []
        assert printed([*shlex.split(line)[1:], *few]).strip(), line
    if name == "evaluate":
        assert (reviews / "scores.json").is_file()


def test_the_bundle_of_dates_is_asked_measured_and_scored(
    folder, dates_run, dates_bundle, monkeypatch
):
    (folder / "bundles").mkdir()
    (folder / "bundles/dates").symlink_to(dates_bundle)
    (folder / "dates.txt").write_text("de|3. Mai 2014\nja|2014年5月3日\n", encoding="utf-8")
    (folder / "mine.csv").write_text("text,date\nde|3. Mai 2014,2014-05-03\n", encoding="utf-8")
    page = page_of("dates.md")
    asked = [line for line in commands(page) if " train dates " not in line]
    for line in asked[: asked.index(next(line for line in asked if " serve " in line))]:
        line, _, path = line.partition("#")[0].partition("<")
        given = (folder / path.strip()).read_bytes() if path else b""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
        assert printed(shlex.split(line)[1:]).strip(), line
    (folder / "docs/pictures").mkdir(parents=True)
    german = re.sub(r"ar\|[^\"]*", "de|3. Mai 2014", page)  # the small model knows no Arabic
    run_scripts(german, {})
    assert (folder / "docs/pictures/attention.png").is_file()
    assert "%" in printed(shlex.split(asked[-1])[1:])


def test_the_parts_of_an_encoder_decoder_become_a_model():
    run_scripts(page_of("library/encoder-decoders.md"), names := {})
    ids = np.array([[3, 4, 5], [6, 7, 0]])
    inputs = {"token_ids": ids, "lengths": np.array([3, 2]), "target_ids": ids}
    assert names["model"](inputs).shape == (2, 3, 120)


def test_the_attention_of_a_model_is_drawn_as_the_page_of_models_shows(folder):
    model = Transformer(11, 11, 8, 6, 2, 16, max_length=7)
    ids = np.array([[3, 4, 5], [6, 7, 0]])
    zoo.translate(folder / "run")
    export(folder / "run", folder / "bundle", options=ExportOptions(attention_heads=True))
    inputs = {"token_ids": ids, "lengths": np.array([3, 2]), "target_ids": ids}
    model(inputs)
    names = {
        "model": model,
        "inputs": inputs,
        "source_tokens": ["a", "b", "c"],
        "target_tokens": ["d", "e", "f"],
        "translate": serving.load(folder / "bundle"),
        "tokenizer": word_piece(VOCABULARY, lowercase=True),
        "bert": tiny_bert(),
    }
    run_scripts(page_of("library/models.md"), names)
    drawn = {path.name for path in folder.glob("*.png")}
    assert drawn == {"attention.png", "lines.png", "bundle.png", "words.png"}

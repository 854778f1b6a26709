"""docs/finetuning.md: its commands, its figure of attention, and the recipes of its scores.

The commands of each task that fine-tunes: tests/journeys/test_task_pages.py.
"""

import re
import shlex

import pytest

from tests.conftest import CHECKOUT
from tests.journeys.pages import blocks, commands, files, printed
from tests.journeys.test_task_pages import PAGES, folder

PAGE = (CHECKOUT / "docs/finetuning.md").read_text(encoding="utf-8")
SCORES = (CHECKOUT / "docs/training/finetuning-scores.md").read_text(encoding="utf-8")

__all__ = ["folder"]  # a fixture


@pytest.mark.long
def test_a_few_lines_become_an_answer_and_a_map_by_the_commands_of_the_page(folder):
    reviews = files(PAGES["distillation"])["reviews.csv"]
    (folder / "reviews.csv").write_text(reviews, encoding="utf-8")
    train, export, ask = (shlex.split(line)[1:] for line in commands(PAGE))
    printed([*train, "--batch-size", "2"])
    assert "next: seqkeras predict bundles/reviews " in printed([*export, "--attention-heads"])
    assert re.fullmatch(r"(good|bad)\t0\.\d+", printed(ask))
    [(_, drawing)] = blocks(PAGE, "python")
    exec(compile(drawing, "finetuning.md", "exec"), {})
    assert all((folder / name).read_bytes()[:4] == b"\x89PNG" for name in ("head.png", "lines.png"))


def test_every_recipe_with_minilm_has_a_row():
    recipes = {path.stem for path in (CHECKOUT / "training/recipes").glob("*minilm.toml")}
    assert set(re.findall(r"^\| `([\w-]+-minilm)` \|", SCORES, re.MULTILINE)) == recipes

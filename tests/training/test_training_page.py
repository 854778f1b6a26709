"""The scripts of docs/training train, from the files that the tasks' pages describe."""

import json
import math
import random
import re

import keras
import pytest

from tests.conftest import CHECKOUT
from tests.training.test_distilling import named_people, reviews
from tests.training.test_language_model import text_file
from tests.training.test_translation import sentences, tab_separated
from tests.training.test_trees import trees

SCRIPTS = [
    (CHECKOUT / f"docs/training/{name}.md").read_text(encoding="utf-8")
    for name in ("scripts", "scripts-of-texts")
]
OPPOSITES = {"hot": "cold", "big": "small", "old": "new", "up": "down"}


def load(path):
    draw = random.Random(0)
    waves = [math.sin(step * math.pi / 12) for step in range(400)]
    loads = [f"{40 + 9 * wave + draw.random():.2f}" for wave in waves]
    loads[5::37] = [""] * len(loads[5::37])  # missing
    rows = [f"{step},{loads[step]},{8 * wave:.2f}\n" for step, wave in enumerate(waves)]
    path.write_text("time,load,temperature\n" + "".join(rows))


def answers(path):
    rows = [{"prompt": f"the opposite of {a}?", "answer": b} for a, b in OPPOSITES.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in 10 * rows))


def pairs(path):
    tab_separated(path.parent, 3 * sentences())


@pytest.mark.long
@pytest.mark.parametrize(
    ("section", "file", "write", "log", "least"),
    [
        ("Classification", "reviews.csv", lambda path: reviews(path, 120), "val_mcc", 0.9),
        ("Tagging", "names.conll", lambda path: named_people(path, 120), "val_f1", 0.9),
        ("Features of words", "tales.txt", text_file, "loss", None),
        ("Answers to prompts", "answers.jsonl", answers, "val_right", 0.9),
        ("Translation", "pairs.tsv", pairs, "val_bleu", 0.5),
        ("Forecasting", "load.csv", load, "val_mae", None),
        ("Trees", "trees.txt", lambda path: trees(path, 80), "val_roots", 0.9),
    ],
)
def test_a_section_trains_from_python(section, file, write, log, least, tmp_path, monkeypatch):
    write(tmp_path / file)
    monkeypatch.chdir(tmp_path)
    [code] = re.findall("```python\n(.*?)```", section_of(section), re.DOTALL)
    keras.utils.set_random_seed(0)
    exec(compile(code, "scripts.md", "exec"), shown := {})
    found = shown["model"].history.history[log]
    assert found[-1] < found[0] if least is None else max(found) > least


def section_of(title):
    [section] = [page.split(f"\n## {title}")[1] for page in SCRIPTS if f"\n## {title}" in page]
    return section.split("\n## ")[0]

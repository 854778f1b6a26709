"""The scripts of docs/training train, from the files that the tasks' pages describe."""

import json
import math
import random
import re

import keras
import pytest

from tests.conftest import CHECKOUT

SCRIPTS = [
    (CHECKOUT / f"docs/training/{name}.md").read_text(encoding="utf-8")
    for name in ("scripts", "scripts-of-texts")
]
GOOD, BAD = ("fine", "great", "warm"), ("dull", "weak", "cold")
WORDS = {"red": "rot", "old": "alt", "big": "groß", "house": "haus", "book": "buch", "tree": "baum"}
OPPOSITES = {"hot": "cold", "big": "small", "old": "new", "up": "down"}


def reviews(draw):
    things = ("film", "story", "cast")
    rows = [
        f"a {draw.choice(words)} {draw.choice(things)},{label}\n"
        for _ in range(60)
        for words, label in ((GOOD, "good"), (BAD, "bad"))
    ]
    return "text,label\n" + "".join(rows)


def names(draw):
    people, places = ("Ann", "Bob", "Eve"), ("Oslo", "Rome", "Lima")
    return "".join(
        f"{draw.choice(people)} B-PER\nlives O\nin O\n{draw.choice(places)} B-LOC\n\n"
        for _ in range(60)
    )


def pairs(draw):
    adjectives, nouns = [*WORDS][:3], [*WORDS][3:]
    rows = [
        f"the {a} {noun} is {b}\tdas {WORDS[a]}e {WORDS[noun]} ist {WORDS[b]}\n"
        for a in adjectives
        for noun in nouns
        for b in adjectives
    ]
    return "".join(draw.sample(3 * rows, 3 * len(rows)))


def load(draw):
    waves = [math.sin(step * math.pi / 12) for step in range(400)]
    loads = [f"{40 + 9 * wave + draw.random():.2f}" for wave in waves]
    loads[5::37] = [""] * len(loads[5::37])  # missing
    rows = [f"{step},{loads[step]},{8 * wave:.2f}\n" for step, wave in enumerate(waves)]
    return "time,load,temperature\n" + "".join(rows)


def tales(draw):
    return "".join(
        f"The {draw.choice(('red', 'old'))} {draw.choice(('house', 'book'))} is here.\n"
        for _ in range(80)
    )


def answers(draw):
    rows = [{"prompt": f"the opposite of {a}?", "answer": b} for a, b in OPPOSITES.items()]
    return "".join(json.dumps(row) + "\n" for row in 10 * rows)


def trees(draw):
    return "".join(
        f"({label} (2 a) ({label} ({label} {draw.choice(words)}) (2 film)))\n"
        for _ in range(40)
        for words, label in ((GOOD, 4), (BAD, 0))
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("section", "file", "content", "log", "least"),
    [
        ("Classification", "reviews.csv", reviews, "val_mcc", 0.9),
        ("Tagging", "names.conll", names, "val_f1", 0.9),
        ("Features of words", "tales.txt", tales, "loss", None),
        ("Answers to prompts", "answers.jsonl", answers, "val_right", 0.9),
        ("Translation", "pairs.tsv", pairs, "val_bleu", 0.5),
        ("Forecasting", "load.csv", load, "val_mae", None),
        ("Trees", "trees.txt", trees, "val_roots", 0.9),
    ],
)
def test_a_section_trains_from_python(section, file, content, log, least, tmp_path, monkeypatch):
    (tmp_path / file).write_text(content(random.Random(0)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [code] = re.findall("```python\n(.*?)```", section_of(section), re.DOTALL)
    keras.utils.set_random_seed(0)
    exec(compile(code, "scripts.md", "exec"), shown := {})
    found = shown["model"].history.history[log]
    assert found[-1] < found[0] if least is None else max(found) > least


def section_of(title):
    [section] = [page.split(f"\n## {title}")[1] for page in SCRIPTS if f"\n## {title}" in page]
    return section.split("\n## ")[0]

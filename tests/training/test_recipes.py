"""Recipes are configs that their commands take, and say what they reach; a page has them all."""

import dataclasses
import re
import tomllib

import pytest

from seqkeras.runs import RunError
from seqkeras.training.commands import parse_options
from seqkeras.training.recipe_scores import (
    command_of_recipe,
    looks_of_run,
    main,
    page,
    scores_of_recipe,
)
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT

RECIPES = sorted((CHECKOUT / "training/recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_holds_options_of_its_task_its_scores_and_its_command(path):
    text = path.read_text(encoding="utf-8")
    values = tomllib.loads(text)
    task, scores = values.pop("task"), values.pop("scores")
    options = parse_options("recipe", TASKS[task], [], values)
    if "--pretrained $" in text:  # a folder of the user's, on the command line alone
        options = dataclasses.replace(options, pretrained="models/encoder")
    if "--teacher runs/" in text:
        options = dataclasses.replace(options, teacher="runs/teacher")
    options.check()
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    assert {name: getattr(options, name) for name in values} == given
    parts = re.findall(r"(?m)^#   (\w+) +(.*)", text)
    assert scores_of_recipe(path) == (task, scores)
    assert f"seqkeras train {task} " in dict(parts)["command"]
    assert f"--config training/recipes/{path.name} " in text


def test_the_page_is_made_of_the_recipes():
    assert (CHECKOUT / "docs/scores.md").read_text(encoding="utf-8") == page(RECIPES)


RECIPE = """# A recipe.
#
#   command    seqkeras train tagging a.conll \\
#                  --config own.toml --out runs/own
task = "tagging"

[scores]
part = "b.conll"
measure = "F1"
"""


@pytest.mark.parametrize(
    "more, cells",
    [
        ("", "– | – | not measured | – | – | – | –"),
        (
            'best = "5 %"\nlast = "4 %"\nprecision_recall = "6 %, 3 %"\nlooks = 3\nseeds = 2',
            "– | 4 % | 5 %, of 3 looks | 6 %, 3 % | 2 | – | –",
        ),
        (
            'goal = "1"\ntest = "2"\npublished = "3, they"',
            "1 | – | not measured | – | – | 2 | 3, they",
        ),
    ],
)
def test_a_row_has_the_scores_of_a_recipe(more, cells, tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(RECIPE + more)
    assert f"\n| [`own`](#own) | `tagging` | b.conll | F1 | {cells} |\n" in page([path])
    command = "seqkeras train tagging a.conll \\\n    --config own.toml --out runs/own"
    assert command_of_recipe(path) == command
    assert f"### own\n\n```\n{command}\n```\n" in page([path])


@pytest.mark.parametrize(
    "content, message",
    [
        ('task = "trees"', r"own\.toml: \[scores\]: part is missing; measure is missing\."),
        (f'{RECIPE}mean = "3"', "mean is unknown"),
        (f'{RECIPE}best = "3"', "best needs last, which no choice flatters, or the reason why"),
        (f'{RECIPE}published = "3"', "published needs test, the score on the same part"),
    ],
)
def test_scores_that_compare_nothing_with_nothing_are_refused(content, message, tmp_path):
    (tmp_path / "own.toml").write_text(content)
    with pytest.raises(RunError, match=message):
        scores_of_recipe(tmp_path / "own.toml")


def test_a_recipe_without_a_command_is_refused(tmp_path):
    (tmp_path / "own.toml").write_text(RECIPE.replace("command", "order"))
    with pytest.raises(RunError, match="own.toml: there is no comment of a command, up to --out"):
        command_of_recipe(tmp_path / "own.toml")


def test_the_looks_of_a_run_are_told(tmp_path, capsys):
    (tmp_path / "history.csv").write_text("step,F1,loss\n1,,3.5\n2,0.5,\n3,0.75,2\n4,0.625,\n")
    assert looks_of_run(tmp_path)["F1"] == (3, 0.625, 0.5, 0.75)
    main([str(tmp_path)])
    assert (
        f"{tmp_path}: F1: 3 looks, the last 0.6250, 0.5000 to 0.7500\n" in capsys.readouterr().out
    )

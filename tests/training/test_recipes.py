"""Recipes are configs that their commands take, and say what they aim at."""

import dataclasses
import re
import tomllib

import pytest

from seqkeras.training.commands import parse_options
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT

RECIPES = sorted((CHECKOUT / "training/recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_holds_options_of_its_task_its_goal_and_its_command(path):
    text = path.read_text(encoding="utf-8")
    values = tomllib.loads(text)
    task = values.pop("task")
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
    assert {"goal", "published", "command"} <= {name for name, _ in parts}
    assert f"seqkeras train {task} " in dict(parts)["command"]
    assert f"--config training/recipes/{path.name} " in text

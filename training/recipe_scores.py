"""The table of the recipes with their scores, `docs/scores.md`, from the recipes' files.

    python -m seqkeras.training.recipe_scores                 write the page
    python -m seqkeras.training.recipe_scores runs/NAME ...   print the looks of runs

A recipe has its scores in a table:

    [scores]
    part = "what is scored, which is no test part"
    measure = "the score's name; several are separated by a semicolon"
    goal = "what was aimed at"
    last = "score at the last look, or why there is none"
    best = "score at the best look, which the run keeps"
    precision_recall = "precision and recall beside an F1"
    looks = 4                         # how many there were, if they were counted
    seeds = 1                         # how many trainings the scores are the mean of
    test = "score on the official test part, which is not among the data"
    published = "what others reach on that test part"

A published figure stands beside a score of the same part, or it does not stand there.
"""

from __future__ import annotations

import csv
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqkeras.runs import RunError
from seqkeras.training.run import HISTORY

CHECKOUT = Path(__file__).resolve().parents[1]
RECIPES = CHECKOUT / "training/recipes"
PAGE = CHECKOUT / "docs/scores.md"
REQUIRED = ("part", "measure")
OPTIONAL = ("goal", "last", "best", "precision_recall", "looks", "seeds", "test", "published")
NONE = "–"
COLUMNS = {
    "recipe": lambda name, task, scores: f"[`{name}`](#{name})",
    "task": lambda name, task, scores: f"`{task}`",
    "scored on": lambda name, task, scores: scores["part"],
    "score": lambda name, task, scores: scores["measure"],
    "goal": lambda name, task, scores: scores.get("goal", NONE),
    "last look": lambda name, task, scores: scores.get("last", NONE),
    "best look": lambda name, task, scores: _best(scores),
    "precision, recall": lambda name, task, scores: scores.get("precision_recall", NONE),
    "seeds": lambda name, task, scores: str(scores.get("seeds", NONE)),
    "test part": lambda name, task, scores: scores.get("test", NONE),
    "published, same test part": lambda name, task, scores: scores.get("published", NONE),
}
TEXT = """\
# Scores of the recipes

`make scores` writes this page from `training/recipes/*.toml`. `make recipe-NAME` trains a recipe
and exports its run: [recipes.md](training/recipes.md) says where the data are.

- **Scored on**: a part that training does not see. It chooses the best look, which flatters that
  look; the last look is not chosen.
- **Test part**: the official test part, or the end of the file, which is not among the data of
  `SEQKERAS_DATA`. It was scored once, with one run of that time, by whoever has it.
- **Published**: what others reach on the same test part. No figure of another part stands here.

{table}

## Commands
{commands}"""


def scores_of_recipe(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the task of a recipe, and its scores.

    Raises:
        RunError: if the file has no table of scores, or one with other names; or a published figure
            stands there without a score of the same part, or a best look without the last one.
    """
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    scores = values.get("scores", {})
    wrong = [f"{name} is missing" for name in REQUIRED if name not in scores]
    wrong += [f"{name} is unknown" for name in scores if name not in (*REQUIRED, *OPTIONAL)]
    if "published" in scores and "test" not in scores:
        wrong.append("published needs test, the score on the same part")
    if "best" in scores and "last" not in scores:
        wrong.append("best needs last, which no choice flatters, or the reason why there is none")
    if wrong:
        raise RunError(f"{path}: [scores]: {'; '.join(wrong)}.")
    return values["task"], scores


def command_of_recipe(path: Path) -> str:
    """Return the command in the comments of a recipe, as `make recipe-NAME` runs it."""
    comment = re.search(r"^#   command[^\0]*?--out \S+$", path.read_text("utf-8"), re.MULTILINE)
    if comment is None:
        raise RunError(f"{path}: there is no comment of a command, up to --out.")
    lines = [line.lstrip("# ").removeprefix("command").strip() for line in comment[0].split("\n")]
    return "\n    ".join(lines)


def page(paths: Sequence[Path]) -> str:
    """Return the text of the page about recipes."""
    rows = [[*COLUMNS], ["---"] * len(COLUMNS)]
    commands = []
    for path in paths:
        task, scores = scores_of_recipe(path)
        rows.append([column(path.stem, task, scores) for column in COLUMNS.values()])
        commands.append(f"\n### {path.stem}\n\n```\n{command_of_recipe(path)}\n```\n")
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return TEXT.format(table=table, commands="".join(commands))


def _best(scores: Mapping[str, Any]) -> str:
    looks = f", of {scores['looks']} looks" if "looks" in scores else ""
    return scores.get("best", "not measured") + looks


def looks_of_run(folder: Path) -> dict[str, tuple[int, float, float, float]]:
    """Return for each score of a run's looks how many there were, the last, the lowest and the
    highest one."""
    with open(folder / HISTORY, encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    looks = {}
    for name in rows[0] if rows else ():
        numbers = [float(row[name]) for row in rows if row[name]]
        if numbers:
            looks[name] = len(numbers), numbers[-1], min(numbers), max(numbers)
    return looks


def main(folders: Sequence[str]) -> None:
    """Write the page; or print the looks of runs, if there are some."""
    if not folders:
        PAGE.write_text(page(sorted(RECIPES.glob("*.toml"))), encoding="utf-8")
    for folder in map(Path, folders):
        for name, (count, last, low, high) in looks_of_run(folder).items():
            print(f"{folder}: {name}: {count} looks, the last {last:.4f}, {low:.4f} to {high:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The README and the pages: a row for every public name, links that lead somewhere, commands that
run."""

import dataclasses
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seqkeras.analysis.__main__ import FIGURES
from seqkeras.training.commands import parse_options
from seqkeras.training.tasks import TASKS
from tests.public_names import public_names

CHECKOUT = Path(__file__).resolve().parents[1]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
DOCS = CHECKOUT / "docs"
PAGES = [
    *CHECKOUT.glob("*.md"),
    *(page for page in DOCS.rglob("*.md") if "node_modules" not in page.parts),
    *CHECKOUT.glob("serving/README.md"),
    *CHECKOUT.glob("serving/*/README.md"),
    *CHECKOUT.glob("examples/*/README.md"),
]
LINK = re.compile(r"\]\((?!http)([^)#\s]*)#?([^)\s]*)\)")
ROWS = {  # public names of a row of docs/library -> its other cells
    names: cells
    for page in sorted(DOCS.glob("library/*.md"))
    for line in page.read_text(encoding="utf-8").splitlines()
    for first, *cells in [re.split(r" (?<!\\)\| ", line.strip("| "))]
    if (names := tuple(re.findall(r"#(seqkeras\.[\w.]+)\)", first)))
}
TYPES = {"seqkeras.tokenizers.Tokenizer", "seqkeras.serving.text.Tokenizer"}
NAMED = {name for names in ROWS for name in names}


@pytest.mark.parametrize(
    "module", sorted(public_names().keys() - {"seqkeras", "seqkeras.training"})
)
def test_every_public_class_and_function_has_a_row(module):
    """A constant may have one."""
    names = {f"{module}.{name}" for name in public_names()[module] if not name.isupper()}
    assert names - TYPES <= NAMED, sorted(names - NAMED)


@pytest.mark.parametrize("names", ROWS, ids=lambda names: names[0])
def test_a_row_names_what_is_public_its_formula_its_source_and_its_proof(names):
    public = {f"{module}.{name}" for module, found in public_names().items() for name in found}
    assert set(names) <= public
    *told, proof = ROWS[names]
    assert told and all(told)
    tests = re.findall(r"`(tests/[\w/.]+)`", proof)
    assert tests and all((CHECKOUT / path).exists() for path in tests)


def test_the_names_of_a_row_are_those_that_it_shows():
    for page in DOCS.glob("library/*.md"):
        shown = re.findall(r"\[`(\w+)`\]\([\w./-]+#([\w.]+)\)", page.read_text(encoding="utf-8"))
        assert all(path.endswith(f".{name}") for name, path in shown)


def test_what_the_page_of_layers_shows_builds_and_compiles():
    page = (CHECKOUT / "docs/layers.md").read_text(encoding="utf-8")
    [section] = re.findall(r"## Use\n(.*?)(?:\n## |\Z)", page, re.DOTALL)
    shown = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(block, "layers.md", "exec"), shown)
    ids = np.array([[3, 4, 5], [6, 7, 0]])
    assert shown["tagger"](ids).shape == (2, 3, 9)
    inputs = {"token_ids": ids, "lengths": np.array([3, 2]), "target_ids": ids}
    assert shown["model"].train_on_batch(inputs, ids)


CHINESE = (CHECKOUT / "docs/zh.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(seqkeras\.[\w.]+)`", CHINESE))))
def test_the_chinese_page_names_modules_that_are_there(name):
    assert pkgutil.resolve_name(name)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`seqkeras figure ([a-z-]+)`", CHINESE))))
def test_the_chinese_page_names_figures_that_are_there(name):
    assert name in FIGURES


@pytest.mark.parametrize("task, options", re.findall(r"`seqkeras train ([\w-]+)(.*?)`", CHINESE))
def test_the_chinese_page_names_commands_that_go_together(task, options):
    arguments, _, folder = options.partition("--pretrained ")
    parsed = parse_options(task, TASKS[task], shlex.split(arguments), {})
    dataclasses.replace(parsed, pretrained=folder).check() if folder else parsed.check()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_link_of_a_page_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def anchors(page):
    """Return the anchors that GitHub gives to headings, and the site to public names."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    names = {
        f"{module}.{name}"
        for module in re.findall(r"^::: (.*)$", text, re.MULTILINE)
        for name in public_names()[module]
    }
    return names | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


def test_the_index_names_every_page():
    """A page in a folder of docs/ may be named by the README.md of the folder instead."""
    named, indexes = set(), {DOCS / "README.md"}
    while indexes:
        links = linked(indexes.pop())
        indexes |= {page for page in links - named if page.name == "README.md"} & set(PAGES)
        named |= links
    pages = {page for page in PAGES if page.is_relative_to(DOCS)}
    assert pages - named <= {DOCS / "README.md"}


def linked(page):
    """Return the files that a page links to."""
    text = page.read_text(encoding="utf-8")
    return {(page.parent / path).resolve() for path, _ in LINK.findall(text) if path}


def test_the_readme_shows_folders_that_are_there():
    [tree] = re.findall(r"## The tree\n\n```\n(.*?)```", README, re.DOTALL)
    shown = re.findall(r"^(\w+)/ ", tree, re.MULTILINE)
    assert shown and all((CHECKOUT / name).is_dir() for name in shown)


@pytest.mark.long
def test_a_file_of_five_lines_becomes_an_answer_by_the_commands_of_the_readme(tmp_path):
    [section] = re.findall(r"## From a file of five lines.*?(?=\n## )", README, re.DOTALL)
    commands = re.search(r"```\n(.*?)```", section, re.DOTALL)[1]
    [script] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def answer(command, **given):
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=True,
            **given,
        ).stdout

    printed = answer(["sh", "-e"], input=commands)
    assert "right are 100.00%" in printed
    assert re.fullmatch(r"good\t[01]\.\d+", printed.splitlines()[-1])
    assert answer([sys.executable, "-c", script]) == "('good',)\n"


IMPORTED = sorted(
    {
        (line[1], name)
        for page in PAGES
        for line in re.finditer(
            r"^ *(?:>>> )?from (seqkeras[\w.]*) import ([\w, ]+)$",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        for name in line[2].split(", ")
    }
)
COUPLED = {"CoupledLSTM", "CoupledLSTMCell"}  # which docs/cells.md makes
OTHERS = {
    "seqkeras.recurrent": COUPLED,
    "seqkeras.recurrent.coupled_lstm": COUPLED,
    "seqkeras.serving.text.trees": {"Nodes"},
    "seqkeras.training.tasks.classification": {"ClassificationOptions"},  # see its command's page
}


@pytest.mark.parametrize("module, name", IMPORTED, ids=lambda part: part)
def test_a_page_imports_public_names(module, name):
    assert name in {*public_names().get(module, ()), *OTHERS.get(module, ())}

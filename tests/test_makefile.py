"""The environment that `make` makes for its commands, and the recipes that it trains."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT

FAILS_ONCE = """#!/bin/sh
case "$*" in "-m venv"*)
    if ! [ -e mended ]; then  # as where ensurepip fails: the interpreter is there, pip is not
        mkdir -p .venv/bin
        ln -sf "{python}" .venv/bin/python
        echo "ensurepip: no space left on device" >&2
        exit 1
    fi
esac
exec "{python}" "$@"
"""


SAYS_WHAT_IT_IS_ASKED = """#!/bin/sh
for argument; do echo "$argument"; done >> asked
"""


def program(path, text):
    """Write a program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def make(folder, *arguments, **variables):
    """Runs `make` as from a shell, though these tests may be run by another `make`."""
    if not shutil.which("make"):
        pytest.skip("there is no make")
    shutil.copy(CHECKOUT / "Makefile", folder)
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    return subprocess.run(
        ["make", *arguments, "PYTHON=./python", "UV="],
        cwd=folder,
        env={name: os.environ[name] for name in os.environ if name not in outer} | variables,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_an_environment_whose_making_failed_is_made_again(tmp_path):
    program(tmp_path / "python", FAILS_ONCE.format(python=sys.executable))
    failed = make(tmp_path, ".venv/made")
    assert failed.returncode and "no space left" in failed.stderr
    (tmp_path / "mended").touch()
    made = make(tmp_path, ".venv/made")
    assert made.returncode == 0, made.stderr
    pip = [tmp_path / ".venv/bin/python", "-m", "pip", "--version"]
    assert str(tmp_path) in subprocess.run(pip, check=True, capture_output=True, text=True).stdout
    assert make(tmp_path, ".venv/made").stdout == "make: '.venv/made' is up to date.\n"


MAKES_ENVIRONMENTS = """#!/bin/sh
echo "$0 $*" >> asked
case "$*" in "-m venv"*)
    for folder; do :; done
    mkdir -p "$folder/bin"
    cp "$0" "$folder/bin/python"
esac
"""


def test_beam_ray_and_spark_are_tested_in_environments_of_their_own(tmp_path):
    (tmp_path / "serving").mkdir()
    for path in [*CHECKOUT.glob("requirements*.txt"), *CHECKOUT.glob("serving/requirements*.txt")]:
        shutil.copy(path, tmp_path / path.relative_to(CHECKOUT))
    program(tmp_path / "python", MAKES_ENVIRONMENTS)
    for _ in range(2):
        made = make(tmp_path, "test-bulk")
        assert made.returncode == 0, made.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    tests = {"beam": "tests/serving/test_beam.py tests/beam", "bulk": "tests/serving/test_bulk.py"}
    for name, test in tests.items():
        own = [line for line in asked if f".venv-{name}" in line]
        making, installing, *testing = own
        assert making == f"./python -m venv --clear .venv-{name}"
        assert installing.startswith(f".venv-{name}/bin/python -m pip install ")
        assert installing.endswith(f" -r requirements-{name}.txt")
        assert testing == [f".venv-{name}/bin/python -m pytest {test}"] * 2
        assert all((CHECKOUT / path).exists() for path in test.split())
    assert len(asked) == 8


NPM = """#!/bin/sh
echo "$(basename "$PWD") $*" >> "{asked}"
echo "npm says much"
{then}
"""
PACKAGES = "serving/javascript/node_modules/.package-lock.json"


def folder_with_npm(folder, then):
    """A folder with a package of JavaScript, and an npm before all others on the path."""
    (folder / "serving/javascript").mkdir(parents=True)
    (folder / "serving/javascript/package-lock.json").touch()
    program(folder / "bin/npm", NPM.format(asked=folder / "asked", then=then))
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def test_npm_installs_what_its_lock_file_says_once(tmp_path):
    path = folder_with_npm(tmp_path, "mkdir -p node_modules; touch node_modules/.package-lock.json")
    made = make(tmp_path, PACKAGES, **path)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == "installing the packages of serving/javascript\n"
    assert make(tmp_path, PACKAGES, **path).stdout == f"make: '{PACKAGES}' is up to date.\n"
    assert (tmp_path / "asked").read_text() == "javascript ci\n"


def test_what_npm_can_not_install_is_told_in_a_line_and_make_goes_on(tmp_path):
    path = folder_with_npm(tmp_path, "echo no network >&2; exit 1")
    made = make(tmp_path, PACKAGES, **path)
    assert (made.returncode, made.stderr) == (0, "")
    _, told = made.stdout.splitlines()
    assert told.startswith("make: npm ci failed in serving/javascript")


@pytest.mark.parametrize("goal", ["quickstart", "test-all"])
def test_npm_is_asked_only_where_it_is(goal, tmp_path):
    path = folder_with_npm(tmp_path, "")
    done = ["requirements", "requirements-test", "requirements-minilm", "requirements-docs"]
    others = [f"--old-file=.venv/{name}.done" for name in done]
    others += [f"--old-file=.venv-{name}/requirements.done" for name in ("beam", "bulk")]
    others.append("--old-file=docs/theme/node_modules/.package-lock.json")
    assert "npm ci" in make(tmp_path, "-n", *others, goal, **path).stdout
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in ("make", "sh"):
        (bare / tool).symlink_to(shutil.which(tool))
    without = make(tmp_path, "-n", *others, goal, PATH=str(bare))
    assert without.returncode == 0 and without.stdout, without.stderr
    assert "npm ci" not in without.stdout


RECIPES = sorted(path.stem for path in (CHECKOUT / "training/recipes").glob("*.toml"))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_trained_by_its_command_and_exported(name, tmp_path):
    shutil.copytree(CHECKOUT / "training/recipes", tmp_path / "training/recipes")
    program(tmp_path / ".venv/bin/seqkeras", SAYS_WHAT_IT_IS_ASKED)
    folders = {"SEQKERAS_DATA": str(tmp_path), "MINILM": str(tmp_path)}
    made = make(tmp_path, "-o", ".venv/requirements.done", f"recipe-{name}", **folders)
    assert made.returncode == 0, made.stderr
    asked = (tmp_path / "asked").read_text().split()
    train, _, file, *_, config, path, out, run = asked[: asked.index("export")]
    assert (train, config, out) == ("train", "--config", "--out")
    assert (path, run) == (f"training/recipes/{name}.toml", f"runs/{name}")
    assert file.startswith(f"{tmp_path}/")
    assert asked[-4:] == ["export", run, f"bundles/{name}", "--overwrite"]


def test_a_recipe_without_data_or_an_encoder_says_what_it_is_and_how_to_get_it(tmp_path):
    shutil.copytree(CHECKOUT / "training/recipes", tmp_path / "training/recipes")
    made = make(tmp_path, "-o", ".venv/requirements.done", f"recipe-{RECIPES[0]}", SEQKERAS_DATA="")
    assert made.returncode and "SEQKERAS_DATA must name the folder" in made.stdout
    for minilm in ("", str(tmp_path / "none")):
        folders = {"SEQKERAS_DATA": str(tmp_path), "MINILM": minilm}
        made = make(tmp_path, "-o", ".venv/requirements.done", "recipe-cola-minilm", **folders)
        assert made.returncode
        [line] = made.stdout.splitlines()
        assert line.startswith("make: MINILM must name the folder of MiniLM's weights")
        assert "requirements-minilm.txt" in line and "docs/finetuning.md" in line

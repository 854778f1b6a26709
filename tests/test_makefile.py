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
    python = tmp_path / "python"
    python.write_text(FAILS_ONCE.format(python=sys.executable))
    python.chmod(0o755)
    failed = make(tmp_path, ".venv/made")
    assert failed.returncode and "no space left" in failed.stderr
    (tmp_path / "mended").touch()
    made = make(tmp_path, ".venv/made")
    assert made.returncode == 0, made.stderr
    pip = [tmp_path / ".venv/bin/python", "-m", "pip", "--version"]
    assert str(tmp_path) in subprocess.run(pip, check=True, capture_output=True, text=True).stdout
    assert make(tmp_path, ".venv/made").stdout == "make: '.venv/made' is up to date.\n"


RECIPES = sorted(path.stem for path in (CHECKOUT / "training/recipes").glob("*.toml"))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_trained_by_its_command_and_exported(name, tmp_path):
    (tmp_path / "training").mkdir()
    shutil.copytree(CHECKOUT / "training/recipes", tmp_path / "training/recipes")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(SAYS_WHAT_IT_IS_ASKED)
    python.chmod(0o755)
    installed = ("-o", ".venv/requirements.done")
    made = make(tmp_path, *installed, f"recipe-{name}", SEQKERAS_DATA=str(tmp_path))
    assert made.returncode == 0, made.stderr
    asked = (tmp_path / "asked").read_text().split()
    export = asked.index("export")
    training, exporting = asked[: export - 1], asked[export - 1 :]
    config = f"training/recipes/{name}.toml"
    assert training[:2] == ["-m", "training"]
    assert training[-4:] == ["--config", config, "--out", f"runs/{name}"]
    assert training[3].startswith(f"{tmp_path}/")  # the first file
    assert exporting == ["-m", "export", f"runs/{name}", f"bundles/{name}", "--overwrite"]


def test_a_recipe_without_data_says_what_is_missing(tmp_path):
    (tmp_path / "training/recipes").mkdir(parents=True)
    (tmp_path / "training/recipes/own.toml").touch()
    made = make(tmp_path, "-o", ".venv/requirements.done", "recipe-own", SEQKERAS_DATA="")
    assert made.returncode and "SEQKERAS_DATA must name the folder" in made.stdout

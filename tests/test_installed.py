"""`pip install .`: one package in site-packages, and its three commands in any folder."""

import json
import re
import shutil
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from seqkeras.__main__ import main
from seqkeras.serving.playground import page_of
from seqkeras.serving.playground.page import FROM_NPM
from tests.conftest import CHECKOUT
from tests.release import (
    BUNDLE,
    PACKAGES,
    TEXT,
    build_wheels,
    copy_sources,
    make_bundle,
    make_environment,
    run,
)

LEFT_OUT = {"README.md", "LICENSE", "pyproject.toml"}  # of serving's own wheel
JAVASCRIPT = "serving/javascript/"  # a package of its own, of npm
SOURCES = f"{JAVASCRIPT}src/"  # which the page reads
CPP = "serving/cpp/"  # built by CMake from the checkout
DEPLOY = "serving/deploy/"  # read by Docker and Kubernetes from the checkout
LOADS = """
import importlib.util
import sys

import keras
import seqkeras.models

assert not any(importlib.util.find_spec(name) for name in ("training", "export", "serving"))
from seqkeras import serving

keras.models.load_model("runs/dates/model.keras")
print(serving.load("bundles/dates")(sys.argv[1]).text)
"""
ONCE = """
import contextlib
import io
import runpy
import sys

package = sys.argv.pop(1)
sys.argv.append("--help")
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    runpy.run_module(package, run_name="__main__", alter_sys=True)
files = {}
for name, module in [*sys.modules.items()]:
    if name.split(".")[0] in ("seqkeras", "training", "export", "serving"):
        files.setdefault(module.__file__, {})[id(module)] = name
assert len(files) > 9
print([names for names in files.values() if len(names) > 1])
"""
PAGE = """
import importlib
import json
import sys
from pathlib import Path

package, node_modules = sys.argv[1:]
page = importlib.import_module(f"{package}.playground").page_of(Path(node_modules))
print(json.dumps({path: file.read_text("utf-8") for path, file in page.files.items()}))
"""


def sources():
    return [
        path
        for package in PACKAGES
        for path in sorted((CHECKOUT / package).rglob("*"))
        if path.is_file() and not {"build", "__pycache__", "node_modules"} & {*path.parts}
    ]


def test_the_command_runs_in_any_folder(tmp_path):
    command = Path(sys.executable).with_name("seqkeras")
    assert run(command, "train", "--help", folder=tmp_path).startswith("Usage: seqkeras train ")


@pytest.mark.parametrize("package", ["training", "export"])
def test_a_command_of_the_checkout_loads_each_module_once(package):
    assert run(sys.executable, "-c", ONCE, package, folder=CHECKOUT) == "[]\n"


def test_what_is_pinned_is_what_the_wheel_takes():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    taken = [*project["dependencies"], *project["optional-dependencies"]["http"]]
    needed = {each.name.lower(): each for each in map(Requirement, taken)}
    files = ["requirements.txt", *CHECKOUT.glob("serving/requirements*.txt")]
    lines = [line for file in files for line in (CHECKOUT / file).read_text().splitlines()]
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", "\n".join(lines), re.MULTILINE))
    assert {name.lower() for name in pinned} == needed.keys()
    for name, version in pinned.items():
        assert needed[name.lower()].specifier.contains(version), name


@pytest.mark.parametrize(
    ("arguments", "status", "output", "error"),
    [
        (["--version"], 0, "seqkeras ", ""),
        (["--help"], 0, "usage: seqkeras train TASK", ""),
        (["predict"], 2, "", "seqkeras predict: the following arguments are required: BUNDLE"),
        ([], 2, "", "seqkeras: the command must be one of train, export, figure, predict, "),
        (["answer"], 2, "", "seqkeras: the command must be one of train, export, figure, "),
    ],
)
def test_one_command_has_them_all(arguments, status, output, error, capsys):
    try:
        assert main(arguments) == status
    except SystemExit as exited:
        assert exited.code == status
    written = capsys.readouterr()
    assert written.out.startswith(output) and written.err.startswith(error)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A folder: wheels/ as pip built them, and environment/, where they are installed."""
    folder = tmp_path_factory.mktemp("installed")
    sources = folder / "sources"
    copy_sources(sources)
    python = make_environment(folder / "environment")  # its pip: an environment of uv has none
    build_wheels(python, sources, folder / "wheels")
    shutil.rmtree(sources)
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(python, "-c", purelib, folder=folder).strip())
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", "wheels"]
    # The checkout may be installed there; what both need is, and pip compares the versions.
    run(*install, "--force-reinstall", "--no-deps", "seqkeras", "seqkeras-serving", folder=folder)
    run(*install, "seqkeras", "seqkeras-serving[tokenizers]", folder=folder)
    return folder


@pytest.mark.long
def test_the_wheel_holds_every_file_under_one_name(environment):
    [wheel] = (environment / "wheels").glob("seqkeras-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = set()
    for path in sources():
        name = path.relative_to(CHECKOUT).as_posix()
        if not (
            (name.startswith((JAVASCRIPT, CPP, DEPLOY)) and not name.startswith(SOURCES))
            or (name.startswith("serving/") and path.name in LEFT_OUT)
        ):
            expected.add(name if name.startswith("seqkeras/") else f"seqkeras/{name}")
    assert names == expected


@pytest.mark.long
def test_the_commands_run_in_an_empty_folder(environment, tmp_path):
    binaries = environment / "environment" / "bin"
    trained, exported = make_bundle(binaries, tmp_path)
    assert trained.splitlines()[-1] == "next: seqkeras export runs/dates bundles/dates"
    assert exported.splitlines()[-1].startswith("next: seqkeras predict bundles/dates ")
    ask = ("predict", BUNDLE, TEXT, "--json")
    answer = run(binaries / "seqkeras", *ask, folder=tmp_path)
    assert json.loads(answer)["input"] == TEXT
    assert run(binaries / "seqkeras-serving", *ask, folder=tmp_path) == answer
    assert run(binaries / "python", "-m", "seqkeras.serving", *ask, folder=tmp_path) == answer
    assert (
        run(binaries / "python", "-c", LOADS, TEXT, folder=tmp_path).strip()
        == (json.loads(answer)["text"])
    )
    card = (tmp_path / BUNDLE / "README.md").read_text(encoding="utf-8")
    assert "seqkeras predict dates " in card


@pytest.mark.long
@pytest.mark.parametrize("package", ["seqkeras.serving", "seqkeras_serving"])
def test_both_wheels_hold_the_page(package, environment, tmp_path):
    for path in FROM_NPM.values():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    python = environment / "environment" / "bin" / "python"
    found = json.loads(run(python, "-c", PAGE, package, tmp_path, folder=tmp_path))
    files = page_of(tmp_path).files
    assert found == {path: file.read_text("utf-8") for path, file in files.items()}

"""The folder `serving/` alone: what it imports, and where nothing else is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT as ROOT
from tests.conftest import run_python

PYPROJECT = ROOT / "serving" / "pyproject.toml"
REQUIREMENTS = ROOT / "serving" / "requirements.txt"
LOADED = """
import json
import sys
import serving
light = sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "onnxruntime"})
from serving.__main__ import main
status = main(["predict", sys.argv[1], "up|bad"])
loaded = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
files = {name: getattr(sys.modules[name], "__file__", None) for name in sorted(loaded)}
print(json.dumps([status, light, [name for name, file in files.items() if file]]))
"""
WITHOUT = """
import sys
sys.modules["onnxruntime"] = None
from serving.__main__ import main
sys.exit(main(["predict", sys.argv[1], "up|bad"]))
"""


def test_serving_loads_numpy_and_onnxruntime_and_nothing_else(shared_bundle):
    answer, loaded = run_python("-c", LOADED, shared_bundle).stdout.splitlines()
    assert answer == "cbe"
    status, light, packages = json.loads(loaded)
    assert status == 0
    assert light == []  # importing serving alone loads neither
    assert [p for p in packages if not p.startswith("_")] == ["numpy", "onnxruntime", "serving"]


def test_what_is_not_installed_is_one_line_with_the_way_to_install_it(shared_bundle):
    done = run_python("-c", WITHOUT, shared_bundle)
    assert (done.returncode, done.stdout) == (1, "")
    message = r"python -m serving predict: .*onnxruntime.*: pip install -r (.*requirements\.txt)\n"
    assert Path(re.fullmatch(message, done.stderr)[1]) == REQUIREMENTS


def test_what_is_pinned_is_what_the_wheel_takes():
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    taken = [*project["dependencies"], *extras["tokenizers"], *extras["http"]]
    least = dict(each.split(">=") for each in taken)
    lines = [
        line
        for file in REQUIREMENTS.parent.glob("requirements*.txt")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert pinned.keys() == least.keys()
    for name, version in pinned.items():
        assert parts(version) >= parts(least[name])


def parts(version):
    return [*map(int, version.split("."))]


def test_the_wheel_holds_every_package():
    content = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    packages = {
        ".".join(["seqkeras_serving", *file.parent.relative_to(ROOT / "serving").parts])
        for file in (ROOT / "serving").rglob("__init__.py")
        if "build" not in file.parts
    }
    assert set(content["tool"]["setuptools"]["packages"]) == packages


def make_environment(folder):
    """Make a virtual environment of nothing but serving's requirements; return `install`."""
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    if uv := shutil.which("uv"):
        subprocess.run([uv, "venv", "--python", sys.executable, folder], check=True)
        install = [uv, "pip", "install", "--python", folder]
    else:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [binaries / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*install, "--requirement", REQUIREMENTS], check=True)
    return binaries, install


@pytest.mark.long
def test_the_folder_and_its_wheel_run_with_nothing_but_the_requirements(shared_bundle, tmp_path):
    copy = tmp_path / "elsewhere" / "serving"
    left_out = shutil.ignore_patterns("__pycache__", "build", "node_modules")
    shutil.copytree(ROOT / "serving", copy, ignore=left_out)
    binaries, install = make_environment(tmp_path / "environment")

    def run(*command):
        command = [binaries / command[0], *command[1:]]
        return subprocess.run(
            command, cwd=copy.parent, check=True, capture_output=True, text=True
        ).stdout

    arguments = ["predict", shared_bundle, "up|bad", "--json"]
    answer = run("python", "-m", "serving", *arguments)
    assert json.loads(answer)["text"] == "cbe"

    subprocess.run([*install, "--no-deps", copy], check=True)  # builds the wheel first
    shutil.rmtree(copy)
    assert run("seqkeras-serving", *arguments) == answer
    assert run("python", "-m", "seqkeras_serving", *arguments) == answer
    code = (
        "import importlib.metadata as m, importlib.util as u, seqkeras_serving as s\n"
        "assert m.version('seqkeras-serving') == s.__version__\n"
        "assert not any(u.find_spec(n) for n in ('serving', 'tensorflow', 'keras', 'seqkeras'))\n"
        "import importlib.resources as f; assert (f.files(s) / 'py.typed').is_file()\n"
        "required = [r for r in m.requires('seqkeras-serving') if 'extra' not in r]\n"
        "print(sorted(required), s.load.__module__)"
    )
    required = ["numpy>=1.26", "onnxruntime>=1.17"]
    assert run("python", "-c", code) == f"{required} seqkeras_serving\n"
    pinned = [line.partition("==")[0] for line in REQUIREMENTS.read_text().split()]
    assert pinned == [each.partition(">=")[0] for each in required]

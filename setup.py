"""The wheel `seqkeras`: the checkout's four packages under one name (`pip install .`).

    checkout     wheel               command in the checkout    installed
    seqkeras/    seqkeras
    training/    seqkeras.training   python -m training         seqkeras train
    export/      seqkeras.export     python -m export           seqkeras export
    serving/     seqkeras.serving    python -m serving          seqkeras serve

In the checkout the four import each other by the names of their folders. The build writes these
imports anew, and the commands that messages name: no package as general as `training` lands beside
other people's. `serving` alone is a wheel too, `seqkeras-serving` (serving/pyproject.toml).
"""

import ast
import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

MOVED = ("training", "export", "serving")
COMMANDS = {"training": "seqkeras train", "export": "seqkeras export", "serving": "seqkeras serve"}


def installed(source):
    """Return the text of a module of the checkout as the wheel holds it, line by line.

    Raises:
        ValueError: if it imports a moved package in a form that is not known here.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        if any(name.partition(".")[0] in MOVED for name in names):
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = _moved(line)
    text = "".join(lines)
    for name, command in COMMANDS.items():
        text = re.sub(rf"python -m {name}\b", command, text)
    return text


def _moved(line):
    names = "|".join(MOVED)
    line, count = re.subn(rf"^(\s*)from ({names})\b", r"\1from seqkeras.\2", line)
    if not count:
        line, count = re.subn(rf"^(\s*)import ({names})(?=\s)", r"\1from seqkeras import \2", line)
    if not count:
        raise ValueError(f"setup.py: an import must begin its line, alone; received {line!r}.")
    return line


class BuildPy(build_py):
    """Write the modules of the wheel."""

    def build_module(self, module, module_file, package):
        """Copy a module, with the names that it has in the wheel."""
        path, copied = super().build_module(module, module_file, package)
        text = Path(path).read_text(encoding="utf-8")
        Path(path).write_text(installed(text), encoding="utf-8")
        return path, copied


if __name__ == "__main__":
    ours = find_packages(include=["seqkeras", "seqkeras.*"])
    moved = find_packages(include=[*MOVED, *(f"{name}.*" for name in MOVED)])
    setup(
        packages=[*ours, *(f"seqkeras.{name}" for name in moved)],
        package_dir={f"seqkeras.{name}": name for name in MOVED},
        cmdclass={"build_py": BuildPy},
    )

"""Build what a release holds, install each part where nothing else is, and ask it a question.

    python -m tests.release    # make release

dist/ then holds two wheels, `seqkeras` and `seqkeras-serving`, and the npm package. The installed
`seqkeras` trains a small model of dates and exports it; each part answers the same text from that
bundle. This module needs Python's standard library, pip, npm and their registries, nothing else.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = ("seqkeras", "training", "export", "serving")
DIST = CHECKOUT / "dist"
RUN, BUNDLE = "runs/dates", "bundles/dates"
TEXT = "de|Samstag, 3. Mai 2014"
TINY = (
    "--locales de --examples 64 --passes 1 --batch-size 32 --units 5 --decoder-units 7 "
    "--embedding-dim 3 --test-examples 5"
).split()
ASK_IN_NODE = """
import { load } from "seqkeras-serving";
import { folder } from "seqkeras-serving/folder";

const ort = await import("onnxruntime-node");
const [bundle, text] = process.argv.slice(-2);
const answer = await (await load(folder(bundle), ort))(text);
console.log(JSON.stringify(answer.text));
"""


class Failed(Exception):
    """A command that failed; the message is the command and what it said."""


def run(*command, folder, **variables):
    """Return the output of a command that sees no checkout; a `Failed` if its status is not 0."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [*map(str, command)]
    done = subprocess.run(
        words, cwd=folder, env=environment | variables, capture_output=True, text=True
    )
    if done.returncode:
        raise Failed(f"{' '.join(words[:9])}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def copy_sources(folder):
    """Copy what wheels are built from: setuptools writes into the folder that it builds."""
    folder.mkdir()
    ignored = shutil.ignore_patterns("build", "__pycache__", "node_modules", "*.egg-info")
    for name in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE"):
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(CHECKOUT / name, folder)


def make_environment(folder):
    """Return the Python of a new environment, which has pip and nothing else."""
    run(sys.executable, "-m", "venv", folder, folder=folder.parent)
    return folder / "bin" / "python"


def build_wheels(python, sources, wheels):
    """Build both wheels by the pip of an environment."""
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels]
    run(*command, sources, sources / "serving", folder=sources.parent)


def make_bundle(binaries, folder):
    """Return what an installed `seqkeras` says while it trains a small run and exports it."""
    trained = run(binaries / "seqkeras", "train", "dates", "--out", RUN, *TINY, folder=folder)
    exported = run(binaries / "seqkeras", "export", RUN, BUNDLE, folder=folder)
    return trained, exported


def main():
    """Build a release, and ask each part of it."""
    if not shutil.which("npm") or not shutil.which("node"):
        raise Failed("node and npm must be installed: they pack and ask serving/javascript")
    changed = _uncommitted()
    if changed:
        raise Failed(f"commit these first, a release is of a commit: {', '.join(changed)}")
    with tempfile.TemporaryDirectory(prefix="seqkeras-release-") as name:
        files = _build(Path(name))
        answer = _answer(Path(name), *files)
    sizes = ", ".join(f"{file.name} {file.stat().st_size / 1e3:,.0f} kB" for file in files)
    print(f"release: each part, installed alone, answered {answer!r}; in dist/: {sizes}")


def _uncommitted():
    """Return the files that differ from the last commit, new ones that git does not ignore too."""
    status = run("git", "status", "--porcelain", folder=CHECKOUT)
    return [line[3:] for line in status.splitlines()]


def _build(folder):
    """Return the three files, new in dist/."""
    print("release: building two wheels and the npm package", flush=True)
    sources = folder / "sources"
    copy_sources(sources)
    DIST.mkdir(exist_ok=True)
    for file in DIST.glob("seqkeras*"):
        file.unlink()
    build_wheels(make_environment(folder / "building"), sources, DIST)
    pack = ["npm", "pack", "--silent", "--pack-destination", DIST]
    run(*pack, folder=sources / "serving" / "javascript")
    patterns = ("seqkeras-*.whl", "seqkeras_serving-*.whl", "seqkeras-serving-*.tgz")
    return [next(DIST.glob(pattern)) for pattern in patterns]


def _answer(folder, seqkeras, serving, javascript):
    """Return the text that all three answer from a bundle of the first.

    Raises:
        Failed: if one can not be installed or asked, or answers another text.
    """
    python = _installed(folder / "seqkeras", seqkeras, "some minutes, 3 GB")
    print("release: seqkeras trains, exports and answers", flush=True)
    make_bundle(python.parent, folder)
    ask = ("predict", BUNDLE, TEXT, "--json")
    answers = {seqkeras: run(python.parent / "seqkeras", *ask, folder=folder)}
    python = _installed(folder / "serving", serving, "NumPy and onnxruntime")
    answers[serving] = run(python.parent / "seqkeras-serving", *ask, folder=folder)
    texts = {file.name: json.loads(answer)["text"] for file, answer in answers.items()}
    texts[javascript.name] = _answer_in_node(folder, javascript)
    if len(set(texts.values())) != 1:
        raise Failed(f"the answers must be equal; received {texts}")
    return texts[seqkeras.name]


def _installed(folder, wheel, needs):
    """Return the Python of a new environment that has a wheel and what it requires."""
    print(f"release: installing {wheel.name} with all that it needs: {needs}", flush=True)
    python = make_environment(folder)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*install, wheel, folder=folder)
    run(python, "-m", "pip", "check", folder=folder)
    return python


def _answer_in_node(folder, package):
    print(f"release: installing {package.name} with onnxruntime-node", flush=True)
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true}\n')
    described = json.loads((CHECKOUT / "serving/javascript/package.json").read_text("utf-8"))
    runtime = f"onnxruntime-node@{described['devDependencies']['onnxruntime-node']}"
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", package, runtime]
    run(*install, folder=project, ONNXRUNTIME_NODE_INSTALL="skip")
    (project / "ask.mjs").write_text(ASK_IN_NODE)
    return json.loads(run("node", "ask.mjs", folder / BUNDLE, TEXT, folder=project))


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"release: {failure}")

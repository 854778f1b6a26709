"""The notebooks of examples/, run in a clean copy: `python -m tests.notebooks NAME …` runs some, or
all, and stores what their cells show.

Nothing of the run remains but the outputs: no times, no lines that a terminal would draw over, no
version of this machine. A notebook may read the checkout beside it.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CHECKOUT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(CHECKOUT.glob("examples/*.ipynb"))
BACKEND = {"KERAS_BACKEND": "tensorflow"}
LONGEST = 1800  # seconds of a cell, on a busy machine
WRITTEN = shutil.ignore_patterns("runs", "bundles", "*.csv", "*.tsv", "*.txt", "*.png")  # by cells
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def code_of(notebook):
    """Return the code cells of a notebook."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook):
    """Return all that the cells of a notebook print."""
    outputs = (output for cell in code_of(notebook) for output in cell.outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream")


def pictures(notebook):
    """Return how many pictures the cells show."""
    outputs = (output for cell in code_of(notebook) for output in cell.outputs)
    return sum("image/png" in output.get("data", {}) for output in outputs)


def executed(path, folder):
    """Return a notebook as it is after a run in a copy of its folder, in `folder`."""
    notebook = nbformat.read(path, as_version=4)
    shutil.copytree(CHECKOUT / "examples", folder / "examples", ignore=WRITTEN)
    for name in ("serving", "docs"):
        (folder / name).symlink_to(CHECKOUT / name)
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        startup_timeout=LONGEST,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder / "examples")}},
    )
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    try:
        client.execute(env=os.environ | {"PATH": path, "PYTHONPATH": str(CHECKOUT), **BACKEND})
    except CellExecutionError as error:  # a command may have failed in a cell before
        raise AssertionError(f"{printed(notebook)}\n{error}") from None
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = output.text.replace("\r\n", "\n")
    notebook.metadata = METADATA
    return notebook


def main():
    """Run notebooks, and write them with what their cells show."""
    chosen = [path for path in NOTEBOOKS if path.stem in sys.argv[1:]] or NOTEBOOKS
    for path in chosen:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.relative_to(CHECKOUT)}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()

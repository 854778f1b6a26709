"""The notebooks of examples/: what is stored in them. tests/journeys runs each."""

import re
import shutil
from runpy import run_path

import nbformat
import pytest

from tests.notebooks import CHECKOUT, METADATA, NOTEBOOKS, code_of, pictures, printed
from tests.test_docs import anchors

MOST_LINES, MOST_BYTES = 59, 150_000
# What a machine, a failure or a library leaves in an output: a path from the root (a server's path
# begins with a version), colors of a terminal, lines of logs.
NOISE = re.compile(
    r"(?<![\w.:/~…`])/(?!v\d+/)\w[\w.-]*/|[A-Z]:\\|\x1b\[|Traceback|\bError\b"
    r"|[Ww]arning|WARNING|I0000 |npm (?:error|warn)|not installed"
)
SEVERAL = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def numbers(pattern, text):
    """Return the numbers in a text that a pattern's group takes."""
    return [float(number) for number in re.findall(pattern, text)]


def test_there_are_six_and_the_page_of_the_folder_names_each():
    page = (CHECKOUT / "examples/README.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 6
    assert [f"]({path.name})" for path in NOTEBOOKS if f"]({path.name})" not in page] == []


@SEVERAL
def test_a_notebook_is_short_and_holds_nothing_of_the_machine_that_ran_it(path):
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert len(text.encode()) < MOST_BYTES
    assert notebook.metadata == METADATA
    cells = code_of(notebook)
    lines = [line for cell in cells for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert pictures(notebook) and not NOISE.search(printed(notebook))
    assert not any(cell.metadata for cell in notebook.cells)
    assert not NOISE.search("".join(cell.source for cell in notebook.cells))
    assert all(cell.id == f"cell-{place}" for place, cell in enumerate(notebook.cells, 1))


@SEVERAL
def test_the_first_cell_installs_the_checkout_where_it_is_missing_and_is_the_same_in_all(path):
    first = code_of(nbformat.read(path, as_version=4))[0].source
    assert first == code_of(nbformat.read(NOTEBOOKS[0], as_version=4))[0].source
    guarded = first.partition('if importlib.util.find_spec("seqkeras") is None:')[2]
    assert "    %pip install -q -e ..\n" in guarded and first.count("%pip") == 1
    assert (path.parent / ".." / "pyproject.toml").is_file()


def test_a_page_of_the_site_has_the_text_the_code_and_what_cells_show():
    path = CHECKOUT / "examples/translator.ipynb"
    page = run_path(str(CHECKOUT / "docs/theme/notebooks.py"))["page_of"](path)
    notebook = nbformat.read(path, as_version=4)
    assert page.startswith("# A translator, and where it looks\n")
    assert all(cell.source in page for cell in notebook.cells)
    assert printed(notebook).splitlines()[-1] in page.splitlines()
    assert page.count("data:image/png;base64,iVBOR") == pictures(notebook)
    assert page.count("````python\n") == len(code_of(notebook))


def names(text):
    model, *plain = numbers(r"│ (?:model|1 to 4 +│|most) .*?([\d.]+)%", text)
    assert model > max(plain)
    [right] = numbers(r"(\d+) of 500 are right", text)
    assert right >= 420


def words(text):
    *_, right = numbers(r"sentences right ([\d.]+)%", text)
    assert right >= 90
    assert "nous avons un joli chapeau et une fleur bleue" in text
    known, unknown = numbers(r"log-probability (-?[\d.]+)", text)
    assert unknown < known - 0.2


def shares(text):
    alone, tuned, small = numbers(r"there; right are ([\d.]+)%", text)
    assert alone < 50 and tuned > 70 and small >= tuned


def bands(text):
    model, *plain = map(float, re.search(r"^MASE +(.*)$", text, re.MULTILINE)[1].split())
    assert len(plain) == 5 and model < min(plain)
    assert "the best model is the model of step 0\n" in text
    half, most = numbers(r"(\d+)% of 156 values lie", text)
    assert 25 <= half <= 75 and most >= 80


def tags(text):
    *_, right = numbers(r"frames right ([\d.]+)%", text)
    assert right > 90
    assert "the whole recording has these tags: True" in text
    [difference] = numbers(r"largest difference: (\S+)", text)
    assert difference < 1e-5


def hosts(text):
    [right] = numbers(r"(\d+) of 300 new images are right", text)
    assert right > 260
    told = dict(re.findall(r"^(\w+): (\d+ of \d+) answers are those of Keras$", text, re.MULTILINE))
    node = {"Node": "12 of 12"} if "Node" in told or shutil.which("npm") else {}
    assert told == dict.fromkeys(("Python", "HTTP", "SavedModel"), "300 of 300") | node


SAID = {
    "bert": shares,
    "classifier": names,
    "forecaster": bands,
    "hosts": hosts,
    "sensor": tags,
    "translator": words,
}


@SEVERAL
def test_what_a_notebook_shows_is_what_its_text_says_and_its_links_lead_somewhere(path):
    notebook = nbformat.read(path, as_version=4)
    SAID[path.stem](printed(notebook))
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    said = numbers(r"takes about (\d+) seconds", " ".join(text.split()))
    took = numbers(r"\d steps in (\d+) s\n", printed(notebook))
    assert said == pytest.approx(took, rel=0.2)
    links = re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text)
    assert links and [link for link, _ in links if not (path.parent / link).is_file()] == []
    assert all(anchor in {"", *anchors(path.parent / link)} for link, anchor in links)


def test_the_notebook_of_hosts_has_asked_node():
    assert "Node: " in printed(nbformat.read(CHECKOUT / "examples/hosts.ipynb", as_version=4))

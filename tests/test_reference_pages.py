"""The pages of the reference name every public module, and show docstrings as they are written."""

import importlib.util
import re
from collections import Counter

import pytest

from seqkeras.export.__main__ import ARGUMENTS
from seqkeras.training.options import options_of
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT
from tests.public_names import public_names

PAGES = {
    path: re.findall(r"^::: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    for path in sorted((CHECKOUT / "docs/reference").glob("*.md"))
}


def loaded(name):
    """A module of docs/theme, which is no package."""
    spec = importlib.util.spec_from_file_location(name, CHECKOUT / "docs/theme" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


as_markdown = loaded("docstrings").as_markdown


def test_each_public_module_stands_on_one_page():
    shown = Counter(module for modules in PAGES.values() for module in modules)
    public = Counter(public_names().keys() - {"seqkeras"})
    missing, twice_or_gone = sorted(public - shown), sorted(shown - public)
    assert not missing, f"{', '.join(missing)}: add `::: MODULE` to a page of docs/reference"
    assert not twice_or_gone, f"{', '.join(twice_or_gone)}: too often in docs/reference"


def test_each_public_package_has_a_page_and_the_index_names_each():
    pages = {path.name for path in PAGES} - {"README.md"}
    missing = sorted({f"{name}.md" for name in public_names()["seqkeras"]} - pages)
    assert not missing, f"{', '.join(missing)}: add to docs/reference"
    index = (CHECKOUT / "docs/reference/README.md").read_text(encoding="utf-8")
    unnamed = sorted(pages - set(re.findall(r"\]\(([\w-]+\.md)\)", index)))
    assert not unnamed, f"{', '.join(unnamed)}: add a link to docs/reference/README.md"


def test_each_page_says_in_a_line_what_the_package_is():
    for path, modules in PAGES.items():
        title, line, *rest = path.read_text(encoding="utf-8").split("\n\n")
        assert title.startswith("# ") and line.endswith(".")
        assert not modules or rest[0].strip() == f"::: {modules[0]}"


DOCSTRING = """A score of two vectors, a_1 * b_1 + a_2 * b_2 and so on.

    score(q, k) = q^T W k
    W = [w_ij]

Notation: W is the paper's W_a; see
    also `Other`.

Args:
    units: size of W, a number
        above 0:

            units = 2^n
    first, second: see `module.Other`.

Call arguments:
    query: (B, T, Q).

Returns:
    (B, T, S) scores.

Raises:
    ValueError: if <eos> costs $5.

Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025; Vinyals_x

Example:
    >>> score(2)
    4
"""
MARKDOWN = """A score of two vectors, a&#95;1 &#42; b&#95;1 + a&#95;2 &#42; b&#95;2 and so on.

```text
score(q, k) = q^T W k
W = [w_ij]
```

**Notation**: W is the paper's W&#95;a; see also [`Other`][here.Other].

**Arguments**

- `units` (`int`): size of W, a number above 0:

    ```text
    units = 2^n
    ```

- `first`, `second`: see [`module.Other`][here.Other].

**Call arguments**: `call(query)`

- `query`: (B, T, Q).

**Returns**

(B, T, S) scores.

**Raises**

- `ValueError`: if &lt;eos&gt; costs &#36;5.

**Reference**: Luong et al. 2015, section 3.1, <https://arxiv.org/abs/1508.04025>; Vinyals&#95;x

**Example**

```pycon
>>> score(2)
4
```"""


@pytest.fixture(scope="module")
def package():
    """The package as mkdocstrings has it, by our extension."""
    griffe = pytest.importorskip("griffe", reason="needs what requirements-docs.txt names")
    extensions = griffe.load_extensions(f"{CHECKOUT}/docs/theme/reference.py:Docstrings")
    loader = griffe.GriffeLoader(search_paths=[CHECKOUT], extensions=extensions)
    loaded = loader.load("seqkeras")
    loader.resolve_aliases()
    return loaded


def test_the_reference_shows_every_public_name(package):
    """mkdocstrings leaves out what has no docstring, and modules within modules."""
    public = {module: names for module, names in public_names().items() if module != "seqkeras"}
    hidden = [
        f"{module}.{name}"
        for module, names in public.items()
        for name in names
        if f"{module}.{name}" not in public
        and (
            (found := package[f"{module}.{name}".removeprefix("seqkeras.")]).is_module
            or not found.has_docstring
        )
    ]
    assert not hidden, f"{', '.join(hidden)}: give a docstring, or a page of docs/reference"


def test_a_name_in_a_docstring_leads_to_an_entry_of_the_reference(package):
    entries = {f"{module}.{name}" for module, names in public_names().items() for name in names}
    entries |= public_names().keys()
    shown = [package[entry.removeprefix("seqkeras.")] for entry in entries - {"seqkeras"}]
    texts = [each.docstring.value for each in shown if each.docstring]
    links = {link for text in texts for link in re.findall(r"`\]\[([\w.]+)\]", text)}
    assert len(links) > 100 and links <= entries, sorted(links - entries)


def test_the_page_of_export_has_a_row_for_each_option():
    rows = re.findall(r"(?m)^\| `(--[a-z-]+)", (CHECKOUT / "docs/export.md").read_text("utf-8"))
    assert sorted(rows) == sorted(flag for flag, *_ in ARGUMENTS if flag.startswith("--"))


def test_the_pages_of_commands_are_made_of_their_options():
    written = CHECKOUT / "docs/reference/commands"
    pages = loaded("commands").pages()
    differing = sorted({path.name for path in written.glob("*.md")} ^ pages.keys())
    assert not differing, f"docs/reference/commands: {', '.join(differing)}: run make reference"
    stale = [name for name in pages if (written / name).read_text("utf-8") != pages[name]]
    assert not stale, f"{', '.join(stale)}: run make reference"


def test_the_page_of_a_command_begins_with_what_must_be_given_and_shows_the_defaults():
    pages = loaded("commands").pages()
    for name, usage in {
        "predict": "seqkeras predict BUNDLE [INPUT ...] [OPTIONS]",
        "serve": "seqkeras serve BUNDLE [BUNDLE ...] [OPTIONS]",
        "train-bilm": "seqkeras train bilm FILES ... --out DIRECTORY [OPTIONS]",
        "train-evaluate": "seqkeras train evaluate FOLDER --data FILE [OPTIONS]",
        "train-tune": "seqkeras train tune TASK FILE --out DIRECTORY [OPTIONS]",
    }.items():
        assert f"```\n{usage}\n```" in pages[f"{name}.md"]
    assert "| `--port` | `PORT` | 8000 |" in pages["serve.md"]
    assert "0.004 for AdamW, otherwise 0; with `--pretrained` 0.01" in pages["train-tagging.md"]
    assert "| option | what it is |" in pages["inspect.md"]
    for text in pages.values():
        assert "| `--help`" not in text and "| `-h, --help`" not in text
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            _, _, *rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()]
            assert all(any(cell.strip() for cell in column) for column in zip(*rows, strict=True))


def test_every_option_of_a_command_has_a_row():
    pages = loaded("commands").pages()
    for name, options in TASKS.items():
        rows = set(re.findall(r"^\| `--([\w-]+)", pages[f"train-{name}.md"], re.MULTILINE))
        fields = options_of(options).values()
        named = {
            field.name.replace("_", "-") for field in fields if "is_argument" not in field.metadata
        }
        assert named <= rows, f"train-{name}.md: {sorted(named - rows)}: run make reference"
    rows = re.findall(r"^\| `([\w-]+)", pages["export.md"], re.MULTILINE)
    assert {flag for flag, _, _ in ARGUMENTS} <= {row.lower() for row in rows}


def test_a_docstring_becomes_markdown_that_reads_the_same():
    links = {"Other": "here.Other", "module.Other": "here.Other"}
    actual = as_markdown(DOCSTRING, links.get, {"units": "int"}, "call(query)")
    assert actual == MARKDOWN


@pytest.mark.parametrize(
    "docstring, markdown",
    [
        (
            "Call arguments (one dictionary):\n    token_ids: (B, T).",
            "**Call arguments** (one dictionary): `call(x)`\n\n- `token_ids`: (B, T).",
        ),
        (
            "Files.\n\nrun.json         the record\nmodel.keras      the model,\n"
            "                 trained",
            "Files.\n\n```text\nrun.json         the record\nmodel.keras      the model,\n"
            "                 trained\n```",
        ),
        ("Use:\n\n    import keras\n", "Use:\n\n```python\nimport keras\n```"),
        ("As\nthis:\n    a b\n", "As this:\n\n```text\na b\n```"),
        ("- one_two\n- `three`", "- one&#95;two\n- `three`"),
    ],
    ids=["heading", "columns", "python", "block", "list"],
)
def test_a_part_of_a_docstring_stays_what_it_is(docstring, markdown):
    assert as_markdown(docstring, call="call(x)") == markdown

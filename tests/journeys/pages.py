"""What tests of pages share: the files, the commands and the scripts that a page shows."""

import contextlib
import io
import re
import shlex

from seqkeras.__main__ import main
from tests.conftest import CHECKOUT

FILE = re.compile(r"`([\w-]+\.(?:csv|tsv|jsonl|conll|toml|txt))`")
BLOCK = re.compile(r"([^\n]+(?:\n[^\n]+)*)\n\n```(\w*)\n(.*?)```", re.DOTALL)  # with what is before


def blocks(page, language=""):
    """Return (the paragraph before it, its text) of each block of a page."""
    return [(before, text) for before, kind, text in BLOCK.findall(page) if kind == language]


def commands(page):
    """Return the lines of a page that a user types."""
    return re.findall(r"^(?:seqkeras|curl|gzip) .*$", page, re.MULTILINE)


def files(page):
    """Return a dictionary: name -> content, of the files that a page shows."""
    return {
        FILE.findall(before)[-1]: text
        for before, text in blocks(page)
        if FILE.search(before) and not commands(text)
    }


def write_files(page, folder):
    for file, text in files(page).items():
        (folder / file).write_text(text, encoding="utf-8")


def printed(arguments):
    """Return what a command of seqkeras prints, which must end well."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(output):
        assert main(arguments) == 0, arguments
    return output.buffer.getvalue().decode().strip("\n")


def page_of(name):
    """Return the text of a page, by its path in docs/."""
    return (CHECKOUT / "docs" / name).read_text(encoding="utf-8")


def shown(page):
    """Return (language, text) of every block of a page, in their order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def follow(name, names=None):
    """Run the scripts and the commands of seqkeras of a page, in their order.

    Args:
        name: of the page.
        names: a dictionary, in which the scripts find and leave their names.

    Returns:
        A list of what the commands printed.
    """
    names = {} if names is None else names
    answers = []
    for language, text in shown(page_of(name)):
        if language == "python":
            exec(compile(text, name, "exec"), names)
        elif not language:
            for line in re.findall(r"^seqkeras .*$", text, re.MULTILINE):
                answers.append(printed(shlex.split(line, comments=True)[1:]))
    return answers

"""What tests of pages share: the files, the commands and the scripts that a page shows."""

import contextlib
import io
import re

from seqkeras.__main__ import main

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

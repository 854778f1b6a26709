"""Docstrings as Markdown: formulas stay as they are written, sections become lists.

A docstring is plain text: paragraphs; blocks that are indented behind an empty line, such as
formulas; and sections, a label with an indented body. Names in backticks that the reference has
become links to it.

Lines in two columns stay as they are.

Left out: tables of Markdown, and emphasis by stars.
"""

import ast
import re
from textwrap import dedent, indent

ITEMS = {"Args": "Arguments", "Call arguments": None, "Attributes": None, "Raises": None}
PROSE = {"Returns": None, "Yields": None, "Example": None, "Examples": None}
LABELS = ("Notation", "Reference", "Left out")  # of paragraphs
ITEM = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): (?=\S)|(\*{0,2}[\w.]+(?:, [\w.]+)*):$")
COLUMNS = re.compile(r"\S+(?: \S+)* {2,}\S| {4,}\S")  # of a line: two, or the second goes on
SPECIAL = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "*": "&#42;",
    "_": "&#95;",
    "[": "&#91;",
    "]": "&#93;",
    "$": "&#36;",
    "^": "&#94;",
    "~": "&#126;",
}


def as_markdown(docstring, link=lambda name: None, types=None, call=""):
    """Return a docstring as Markdown.

    Args:
        docstring: its text, without the indentation of the source.
        link: a function of a name in backticks; returns the identifier that it leads to, or None.
        types: name of an argument -> its type, for the section Args.
        call: how a layer is called, for the section Call arguments.
    """
    parts = []
    for label, aside, lines in _blocks(docstring.splitlines()):
        if label in ITEMS:
            called = f": `{call}`" if call and label == "Call arguments" else ""
            parts.append(f"**{ITEMS[label] or label}**{_inline(aside, link)}{called}")
            parts += _items(lines, link, types or {} if label == "Args" else {})
        elif label in PROSE:
            parts += [f"**{label}**", as_markdown("\n".join(lines), link)]
        elif label == "code":
            parts.append(_fenced(lines))
        else:
            parts.append(_paragraph(lines, link))
    return "\n\n".join(part for part in parts if part)


def _blocks(lines):
    """Yield (label, aside, lines) of sections, of indented blocks as "code", of paragraphs as
    "text"."""
    index = 0
    while index < len(lines):
        line = lines[index]
        if not line.strip():
            index += 1
            continue
        if line.startswith("    ") or line.startswith(">>>"):
            stop = _end(lines, index, indented=line.startswith("    "))
            yield "code", "", lines[index:stop]
        elif heading := _heading(line):
            stop = _end(lines, index + 1, indented=True)
            yield *heading, dedent("\n".join(lines[index + 1 : stop])).splitlines()
        else:
            stop = index + 1
            while stop < len(lines) and lines[stop].strip() and not _begins(lines, stop):
                stop += 1
            yield "text", "", lines[index:stop]
        index = stop


def _heading(line):
    """Return the label of a section and what stands behind it in brackets, or None."""
    match = re.fullmatch(r"([A-Z][a-z ]+?)( \(.+\))?:", line)
    return (match[1], match[2] or "") if match and match[1] in {*ITEMS, *PROSE} else None


def _begins(lines, index):
    """Return whether a section, or a block behind a colon, begins inside a paragraph."""
    line, before = lines[index], lines[index - 1]
    return (
        _heading(line) is not None
        or line.startswith(">>>")
        or (line.startswith("    ") and before.endswith(":") and not before.startswith(" "))
    )


def _end(lines, index, indented):
    """Return where an indented block ends, or one of lines without an empty one."""
    stop = index
    for number in range(index, len(lines)):
        if not lines[number].strip():
            if not indented:
                break
        elif indented and not lines[number].startswith("    "):
            break
        else:
            stop = number + 1
    return stop


def _items(lines, link, types):
    """Yield the items of a section as those of a list."""
    items = []
    for line in lines:
        match = None if line.startswith(" ") else ITEM.match(line)
        if match:
            items.append((match[1] or match[2], [line[match.end() :]]))
        elif items:
            items[-1][1].append(line)
        else:
            items.append((None, [line]))
    for names, told in items:
        text = as_markdown("\n".join([told[0], dedent("\n".join(told[1:]))]), link)
        if names is None:
            yield text
            continue
        shown = ", ".join(_code(name.strip("*"), link) for name in names.split(", "))
        kind = f" ({_code(types[names], link)})" if names in types else ""
        yield f"- {shown}{kind}: {indent(text, '    ')[4:]}"


def _fenced(lines):
    code = dedent("\n".join(lines)).rstrip()
    language = "pycon" if code.startswith(">>>") else "text"
    if language == "text" and "import " in code:
        try:
            ast.parse(code)
            language = "python"
        except SyntaxError:
            pass
    return f"```{language}\n{code}\n```"


def _paragraph(lines, link):
    if all(re.match(r"(- |\d+\. |  )", line) for line in lines):  # a list of Markdown's
        return "\n".join(_inline(line, link) for line in lines)
    if len(lines) > 1 and all(COLUMNS.match(line) for line in lines):
        return _fenced(lines)
    text = " ".join(line.strip() for line in lines)
    for label in LABELS:
        if text.startswith(f"{label}: "):
            return f"**{label}**: {_inline(text.removeprefix(f'{label}: '), link)}"
    return _inline(text, link)


def _inline(text, link):
    """Return text whose special characters are none to Markdown, with links."""
    shown = []
    for index, part in enumerate(re.split(r"`([^`]+)`", text)):
        if index % 2:
            shown.append(_code(part, link))
            continue
        for number, piece in enumerate(re.split(r"(https?://[^\s,;]*[^\s,;.)])", part)):
            escaped = re.sub(r"[&<>*_\[\]$^~]", lambda match: SPECIAL[match[0]], piece)
            shown.append(f"<{piece}>" if number % 2 else escaped)
    return "".join(shown)


def _code(name, link):
    identifier = link(name)
    return f"[`{name}`][{identifier}]" if identifier else f"`{name}`"

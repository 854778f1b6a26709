"""A notebook as a page of the site: its text, its code, and what the cells show."""

import json
from pathlib import Path

PICTURE = '<img alt="What the cell above draws" src="data:image/png;base64,{}">'


def page_of(notebook: Path) -> str:
    """Return a notebook as Markdown; its pictures are in the page."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [f"````python\n{source}\n````", *map(_shown, cell["outputs"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(output):
    """Return an output of a cell as Markdown; an empty text for one without text and picture."""
    picture = output.get("data", {}).get("image/png")
    if picture:
        return PICTURE.format("".join(picture).replace("\n", ""))
    text = "".join(output.get("text", ())).strip("\n")
    return f"````text\n{text}\n````" if text else ""

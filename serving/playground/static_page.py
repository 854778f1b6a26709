"""The page with bundles as a folder of static files, which any web server takes.

Beside a large file lies FILE.gz, for servers that send it in its place (nginx: gzip_static).
"""

import json
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ..manifest import MANIFEST, Manifest, read_bundle, verify_files
from .compression import compressed, compresses
from .page import ASSETS, CONTENT, INDEX, Page, entry_of

LARGE = 2**14  # bytes
BUNDLES = "bundles/"
OWN = (ASSETS, BUNDLES)  # folders


def write_static(folder: Path, bundles: Iterable[tuple[str, Path]], page: Page) -> None:
    """Write a page that answers in the browser.

    Args:
        folder: an empty folder.
        bundles: (name, folder) of each bundle.
        page: the `Page`, whose `missing` is "".

    Raises:
        BundleError: if a bundle can not be read, or is damaged.
        OSError: if a file can not be written.
    """
    for path, file in page.files.items():
        _copy(file, folder / path)
    entries = []
    for name, bundle in bundles:
        prefix = f"{BUNDLES}{name}/"
        manifest = read_bundle(bundle, partial(_write, bundle, folder / prefix))
        entries.append(entry_of(name, prefix, bundle, manifest))
    content = page.content(entries, server=False)
    (folder / CONTENT).write_text(f"{json.dumps(content, indent=2)}\n", encoding="utf-8")


def foreign_file(folder: Path) -> str | None:
    """Return a file of a folder that `write_static` does not write; None if there is none.

    A folder without a page is not its own at all: INDEX or CONTENT is then returned.
    """
    for name in (INDEX, CONTENT):
        if not (folder / name).is_file():
            return name
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_symlink() or not path.is_dir()) and not (
            name in (INDEX, CONTENT) or name.startswith(OWN)
        ):
            return name
    return None


def _write(bundle, folder, manifest):
    names = _files_of(manifest)
    verify_files(bundle, manifest, names)
    for name in (MANIFEST, *names):
        _copy(bundle / name, folder / name)
    return manifest


def _files_of(manifest: Manifest) -> list[str]:
    """Return the files that answers in a browser need, in float32."""
    graphs = [graph for role, graph in manifest.graphs.items() if role != "generate"]
    names = [*(name for graph in graphs for name in graph.files), *manifest.tokenizers.values()]
    return [*dict.fromkeys(names)]


def _copy(file, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
    size = file.stat().st_size
    if size >= LARGE and compresses(file, size):
        target.with_name(f"{target.name}.gz").write_bytes(compressed(file))

"""The files of the page, by their addresses."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..manifest import Manifest
from .unread import unread

STATIC = Path(__file__).parent / "static"
PACKAGE = Path(__file__).parents[1] / "javascript"
NODE_MODULES = PACKAGE / "node_modules"
INDEX, ASSETS, CONTENT = "index.html", "page/", "page.json"
MODULES = f"{ASSETS}modules/"
OURS = f"{MODULES}seqkeras-serving/"
RUNTIME = "onnxruntime-web/ort-wasm-simd-threaded.wasm"
# Address below MODULES -> file below node_modules.
FROM_NPM = {
    "onnxruntime-web/ort.wasm.min.mjs": "onnxruntime-web/dist/ort.wasm.min.mjs",
    "onnxruntime-web/ort-wasm-simd-threaded.mjs": (
        "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs"
    ),
    RUNTIME: "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "tokenizers/tokenizers.min.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs",
}
INSTALL = (  # the versions of package.json
    "npm install --prefix FOLDER onnxruntime-web@1.30.0 @huggingface/tokenizers@0.2.0"
)
OWN_TYPES = (".css", ".html", ".js", ".svg")


@dataclass(frozen=True)
class Page:
    """The page.

    Attributes:
        files: address -> file.
        missing: why it can not answer in the browser; "" if it can.
    """

    files: dict[str, Path]
    missing: str

    def content(self, bundles: Iterable[dict[str, Any]], server: bool) -> dict[str, Any]:
        """Return page.json.

        Args:
            bundles: what `entry_of` returns for each bundle.
            server: whether a server answers too.
        """
        runtime = self.files.get(MODULES + RUNTIME)
        return {
            "server": server,
            "browser": {
                "missing": self.missing,
                "bytes": runtime.stat().st_size if runtime else 0,
            },
            "bundles": list(bundles),
        }


def entry_of(name: str, files: str, folder: Path, manifest: Manifest) -> dict[str, Any]:
    """Return the entry of a bundle in page.json.

    Args:
        name: the bundle's name on the page.
        files: the address below which its files lie.
        folder: the bundle's folder.
        manifest: its manifest.
    """
    reason = unread(folder, manifest)
    return {"name": name, "pipeline": manifest.pipeline, "files": files, "unread": reason}


def page_of(node_modules: Path | None = None) -> Page:
    """Return the page.

    Args:
        node_modules: the folder of npm packages; None: serving/javascript's, if it is there.

    Raises:
        ValueError: if a folder that is named lacks a package.
    """
    files = _below(STATIC)
    folder = NODE_MODULES if node_modules is None else node_modules
    modules = {MODULES + to: folder / path for to, path in FROM_NPM.items()}
    lacking = [to for to, path in FROM_NPM.items() if not (folder / path).is_file()]
    if lacking:
        name = lacking[0].partition("/")[0]
        missing = f"{name} is not installed: {INSTALL}, then --node-modules FOLDER/node_modules"
        if node_modules is not None:
            raise ValueError(f"--node-modules {node_modules}: {missing}.")
        return Page(files, missing)
    ours = {f"{OURS}{name}": path for name, path in _below(PACKAGE / "src").items()}
    return Page(files | ours | modules, "")


def _below(folder):
    """Return path below a folder -> file, of those that a page is made of."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.suffix in OWN_TYPES
    }

"""--web: the page of `seqkeras serve`, with the bundle, as static files."""

from collections.abc import Collection
from pathlib import Path

from seqkeras.export.checks import ExportError
from seqkeras.folders import written_aside
from seqkeras.serving.playground import foreign_file, page_of, write_static


class WebFolder:
    """A folder of static files to make; a ValueError says why it can not be made.

    It must not be, hold or lie in the folders `taken`: the run and the bundle. `node_modules` is
    npm's folder with onnxruntime-web; None for serving/javascript's.
    """

    def __init__(
        self,
        folder: Path,
        taken: Collection[Path],
        overwrite: bool = False,
        node_modules: Path | None = None,
    ):
        self._folder, self._overwrite = folder.resolve(), overwrite
        self._page = page_of(node_modules)
        if self._page.missing:
            raise ExportError(f"--web: {self._page.missing}.")
        for other in map(type(folder).resolve, taken):
            if (
                self._folder == other
                or self._folder in other.parents
                or other in self._folder.parents
            ):
                raise ExportError(f"--web {folder}: {other} is there; choose another folder.")
        self.require_free()

    def require_free(self) -> None:
        """Raise an ExportError unless it may be written."""
        if not self._folder.exists():
            return
        if foreign := foreign_file(self._folder):
            raise ExportError(
                f"--web {self._folder}: exists, and is not only such a page ({foreign}), so it is "
                "never replaced; choose another folder."
            )
        if not self._overwrite:
            raise ExportError(f"--web {self._folder}: exists already; replace it with --overwrite.")

    def write(self, bundle: Path, name: str) -> None:
        """Write it, with a bundle under a name."""
        with written_aside(self._folder, self.require_free) as folder:
            write_static(folder, [(name, bundle)], self._page)

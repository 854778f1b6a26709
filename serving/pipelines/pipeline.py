"""The base class of pipelines; `serving.load` returns one."""

from typing import TYPE_CHECKING, Any

from ..manifest import Manifest
from .model import ROLE


class Pipeline:
    """Base of the pipelines, each of which answers one kind of inputs (`serving.pipelines`).

    Attributes:
        manifest: the bundle's `Manifest`.
        roles: of the graphs that it opens; a bundle may hold more, for hosts other than Python.
    """

    manifest: Manifest
    roles: tuple[str, ...] = (ROLE,)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Answer an input, or each one of a list."""
        raise NotImplementedError

    def encode(self, *args: Any, **options: Any) -> Any:
        """Return the model's input for an input of the pipeline.

        Raises:
            ValueError: if it can not be answered.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        made = f"{self.manifest.task!r}, made {self.manifest.created}"
        return f"<{type(self).__name__} of {self.manifest.name!r}: {made}>"

    if TYPE_CHECKING:  # only some pipelines have `stream`, `similarity`, `fields`

        def __getattr__(self, name: str) -> Any: ...

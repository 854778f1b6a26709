"""What all pipelines have in common; `serving.load` returns one."""

from typing import TYPE_CHECKING, Any

from ..manifest import Manifest
from .model import ROLE


class Pipeline:
    """Base of the pipelines, each of which answers one kind of inputs (`serving.pipelines`).

    Attributes:
        manifest: the bundle's `Manifest`.
        roles: of the graphs that are opened; a bundle may hold others, for hosts that are not
            Python.
    """

    manifest: Manifest
    roles: tuple[str, ...] = (ROLE,)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Answer an input, or each one of a list."""
        raise NotImplementedError

    def encode(self, *args: Any, **options: Any) -> Any:
        """Return what the model reads of an input.

        Raises:
            ValueError: if it can not be answered.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        made = f"{self.manifest.task!r}, made {self.manifest.created}"
        return f"<{type(self).__name__} of {self.manifest.name!r}: {made}>"

    if TYPE_CHECKING:  # `stream`, `similarity` and `fields` are of some pipelines

        def __getattr__(self, name: str) -> Any: ...

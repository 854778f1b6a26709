"""The base class of pipelines; `serving.load` returns one."""

from typing import TYPE_CHECKING, Any

from ..answering import answers_or_refusals
from ..checks import shown
from ..decoding import Memory
from ..manifest import Manifest
from ..streams import Stream, Streaming, Streams, StreamState
from .model import ROLE


class Pipeline:
    """Base of the pipelines, each of which answers one kind of inputs; `serving.load` returns one.

    Attributes:
        manifest: the bundle's `Manifest`.
        roles: roles of the graphs that the pipeline opens; a bundle may hold more, for hosts other
            than Python.
        streaming: what the streams of a pipeline of frames share; None for other pipelines.
        shares_steps: whether it has `jobs` for a `serving.decoding.Together`.
        memory: the `serving.decoding.Memory` of these.

    Example:
        >>> from seqkeras.serving import load
        >>> pipeline = load("bundles/reviews", threads=1)
        >>> pipeline
        <Classify of 'reviews': 'own', made ...>
        >>> answer, error = pipeline.answers_or_errors(["A model", None])
        >>> sorted(answer.scores), str(error)
        (['high', 'low', 'middle'], 'Classify: text must be a string; received None.')
    """

    manifest: Manifest
    roles: tuple[str, ...] = (ROLE,)
    streaming: Streaming | None = None
    shares_steps: bool = False
    memory: Memory | None = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Answer an input, or each one of a list.

        Raises:
            NotImplementedError: always; each pipeline has its own.
        """
        raise NotImplementedError

    def encode(self, *args: Any, **options: Any) -> Any:
        """Return the model's input for an input of the pipeline.

        Raises:
            ValueError: if it can not be answered.
            NotImplementedError: always; each pipeline has its own.
        """
        raise NotImplementedError

    def open(
        self, streams: int | None = None, state: StreamState | bytes | None = None
    ) -> Stream | Streams:
        """Open a stream of frames, which answers each frame as it comes.

        Args:
            streams: None for one `Stream`; the number of several that are stepped together,
                `Streams`.
            state: the state from which a stream goes on, or its bytes; None to begin.

        Raises:
            ValueError: if the bundle has no stream, or the state belongs to another bundle.
        """
        if self.streaming is None:
            who = type(self).__name__
            raise ValueError(f"{who}: a stream is of frames; this bundle reads none.")
        return self.streaming.opened(streams, state)

    def answers_or_errors(self, inputs: list, **options: Any) -> list:
        """Return an answer for each input of a list; one that fails does not fail the others.

        Args:
            inputs: the list.
            options: the options of the call.

        Returns:
            A list in the order of the inputs: the answer, or the ValueError that says why there is
            none. It is a `BundleError` if the graphs fail on an input that the pipeline takes.

        Raises:
            ValueError: if the inputs are not a list, or an option is refused.
        """
        if not isinstance(inputs, list):
            who = type(self).__name__
            raise ValueError(f"{who}: inputs must be a list; received {shown(inputs)}.")
        self([], **options)  # refuses wrong options
        return answers_or_refusals(self, inputs, options)

    def __repr__(self) -> str:
        made = f"{self.manifest.task!r}, made {self.manifest.created}"
        return f"<{type(self).__name__} of {self.manifest.name!r}: {made}>"

    if TYPE_CHECKING:  # only some pipelines have `stream`, `similarity`, `fields`

        def __getattr__(self, name: str) -> Any: ...

"""Answers to inputs, as searches that somebody else may turn."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..decoding import Search, steps
from ..manifest import NoFiniteNumber


@dataclass(frozen=True, eq=False)
class Job:
    """A search that answers some inputs.

    Attributes:
        places: their places among the inputs.
        search: the `serving.decoding.Search`.
        begin: returns the state before its first step; may run a graph.
        results: returns at its end, for each of the inputs, the answer or a `NoFiniteNumber`.
        name: the name of an input, for errors.
        pieces: of a stream, which answers one input greedily, the `pieces.Pieces` of its text.
        before: what a stream gives before its first step.
    """

    places: Sequence[int]
    search: Search
    begin: Callable[[], Any]
    results: Callable[[], list]
    name: str
    pieces: Any = None
    before: str = ""

    def piece(self) -> str:
        """Return what the last step added to the text of a stream; "" for nothing.

        Raises:
            NoFiniteNumber: if its log-probability is not finite.
        """
        results: Any = self.search.results
        if not np.isfinite(results.totals[0]):
            raise NoFiniteNumber(self.name)
        read = self.pieces.rest if self.search.is_over else self.pieces.read
        return read(results.generated(0))

    def streamed(self, step: Callable) -> Generator[str, None, Any]:
        """Yield the pieces of a stream, by steps of its own; return the answer.

        Raises:
            NoFiniteNumber: as `piece`.
        """
        if self.before:
            yield self.before
        for _ in steps(step, self.begin(), self.search):
            if piece := self.piece():
                yield piece
        [answer] = self.results()
        return answer

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
        results: takes the numbers of inputs that are done, and returns for each of them the answer
            or a `NoFiniteNumber`.
        name: the name of an input, for errors.
        num_samples: how many sources of the search answer each input.
        pieces: of streams, which are answered greedily, the `pieces.Pieces` of each text.
        before: what each stream gives before its first step.
    """

    places: Sequence[int]
    search: Search
    begin: Callable[[], Any]
    results: Callable[[Sequence[int]], list]
    name: str
    num_samples: int = 1
    pieces: Sequence = ()
    before: Sequence[str] = ()

    def is_done(self) -> list[bool]:
        """Return for each of the inputs whether its answer is complete."""
        left = {source // self.num_samples for source in self.search.results.sources.tolist()}
        return [number not in left for number in range(len(self.places))]

    def piece(self, number: int) -> str:
        """Return what the last step added to the text of a stream; "" for nothing.

        Args:
            number: which of the inputs.

        Raises:
            NoFiniteNumber: if its log-probability is not finite.
        """
        results: Any = self.search.results
        if not np.isfinite(results.totals[number]):
            raise NoFiniteNumber(self.name)
        text = self.pieces[number]
        read = text.read if number in results.sources else text.rest
        return read(results.generated(number))

    def streamed(self, step: Callable) -> Generator[str, None, Any]:
        """Yield the pieces of the only stream, by steps of its own; return the answer.

        Raises:
            NoFiniteNumber: as `piece`.
        """
        if self.before[0]:
            yield self.before[0]
        for _ in steps(step, self.begin(), self.search):
            if piece := self.piece(0):
                yield piece
        [answer] = self.results([0])
        return answer

"""Searches that share the runs of a step: each joins and leaves between two of them.

So a short answer waits neither for the end of a long one nor for a batch to fill. Searches with as
many beams share a lane, whose sources lie in one state. Lanes take turns by the time that their
runs took: a light search beside a heavy one has half of the time.

Reference: Yu et al. 2022, section 3.1, iteration-level scheduling ("Orca: A Distributed Serving
System for Transformer-Based Generative Models")
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .loop import Search


class Together:
    """Turns many searches at once.

    Args:
        step: the step of all searches, see `serving.decoding`. Its states can `follow` a
            `beam_index` without a step, and `join` another state.
        clock: returns seconds, by which lanes take turns.
    """

    def __init__(self, step: Callable, clock: Callable[[], float] = time.perf_counter):
        self._step, self._clock = step, clock
        self._lanes: dict[int, _Lane] = {}  # by the number of beams

    def __len__(self) -> int:
        """Return the number of searches that go on."""
        return sum(map(len, self._lanes.values()))

    def begin(self, search: Search, state: Any) -> None:
        """Let a search take its first step, alone, for its start may be longer than a token; then
        it goes on beside the others."""
        candidates, state = self._step(
            search.token_ids, search.beam_index, search.num_candidates, state, search.reads
        )
        search.take(candidates)
        if search.is_over:
            return
        state.follow(search.beam_index)
        num_beams = search.beam_index.shape[1]
        if num_beams not in self._lanes:
            least = min((lane.seconds for lane in self._lanes.values()), default=0.0)
            self._lanes[num_beams] = _Lane(least)
        self._lanes[num_beams].join(search, state)

    def step(self) -> None:
        """Let the searches of a lane take a step.

        If the step fails, they end, and each has the `error`.
        """
        lane = min(self._lanes.values(), key=lambda lane: lane.seconds)
        begun = self._clock()
        lane.step(self._step)
        lane.seconds += self._clock() - begun
        self._drop_empty()

    def leave(self, search: Search) -> None:
        """Let a search end as it is."""
        for lane in self._lanes.values():
            lane.leave(search)
        self._drop_empty()

    def _drop_empty(self):
        self._lanes = {beams: lane for beams, lane in self._lanes.items() if len(lane)}


@dataclass(eq=False)
class _Member:
    """A part of the sources of a lane's state.

    Attributes:
        search: the search to which they belong; None if it has ended.
        count: how many they are.
        followed: whether the state has followed the search's `beam_index` already.
    """

    search: Search | None
    count: int
    followed: bool = True

    def beam_index(self, begin, num_beams):
        """Return the rows of the state that the search reads, of which its own begin at `begin`."""
        if not self.followed:
            return begin + self.search.beam_index
        self.followed = False
        return begin + np.arange(self.count * num_beams).reshape(self.count, num_beams)


class _Lane:
    """Searches with as many beams, and the state of all their sources in order.

    Attributes:
        seconds: how long its steps took, beside those of the other lanes.
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self._members, self._state = [], None

    def __len__(self):
        return sum(member.search is not None for member in self._members)

    def join(self, search, state):
        if self._state is None:
            self._state = state
        else:
            self._state.join(state)
        self._members.append(_Member(search, len(search.token_ids)))

    def leave(self, search):
        for member in self._members:
            if member.search is search:
                member.search = None

    def step(self, step):
        rows, begin = [], 0
        going = [member for member in self._members if member.search is not None]
        num_beams = going[0].search.token_ids.shape[1]
        for member in self._members:
            if member.search is not None:
                rows.append(member.beam_index(begin, num_beams))
            begin += member.count * num_beams
        searches = [member.search for member in going]
        try:
            candidates, self._state = step(
                np.concatenate([search.token_ids for search in searches]),
                np.concatenate(rows),
                max(search.num_candidates for search in searches),
                self._state,
                frozenset().union(*(search.reads for search in searches)),
            )
        except Exception as error:
            for member in going:
                member.search.error, member.search = error, None
            return
        self._members, first = going, 0
        for member in going:
            member.count = len(member.search.token_ids)
            own = candidates.of(slice(first, first + member.count), member.search.num_candidates)
            try:
                member.search.take(own)
            except Exception as error:  # of what chooses its tokens
                member.search.error = error
            first += member.count
            if member.search.is_over:
                member.search = None

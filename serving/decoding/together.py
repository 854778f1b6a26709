"""Searches that share the runs of a step: each joins and leaves between two of them.

So a short answer waits neither for the end of a long one nor for a batch to fill. Searches with as
many beams share a lane, whose sources lie in one state; light searches and others do not meet.
Between two steps, a lane reads prompts of few tokens only. Time is shared by halves: light
searches have as much as the others, and a lane as much as each other lane.

Reference: Yu et al. 2022, section 3.1, iteration-level scheduling ("Orca: A Distributed Serving
System for Transformer-Based Generative Models"); Agrawal et al. 2024, section 4.2, prompts that are
read in chunks ("Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve")
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .loop import Search
from .results import Candidates

CHUNK = 128  # tokens of prompts that are read in one part
PAUSE = 2 * CHUNK  # tokens of prompts after which the searches of a lane take a step
LEAST = 32  # tokens that a shorter part counts, because it takes almost as long


@dataclass(frozen=True)
class Size:
    """What states hold at most.

    Attributes:
        rows: beams of all sources.
        tokens: tokens of a row.
        sources: sources.
        source_length: tokens of a source.
    """

    rows: int = 0
    tokens: int = 0
    sources: int = 0
    source_length: int = 0

    def beside(self, other: "Size") -> "Size":
        """Return the size of a state that holds the sources of both."""
        return Size(
            self.rows + other.rows,
            max(self.tokens, other.tokens),
            self.sources + other.sources,
            max(self.source_length, other.source_length),
        )


@dataclass(frozen=True)
class Memory:
    """The memory of states.

    Attributes:
        num_bytes: takes a `Size`, returns its bytes.
        most: how many bytes there may be.
    """

    num_bytes: Callable[[Size], int]
    most: int

    def holds(self, size: Size) -> bool:
        """Return whether states of a size fit."""
        return self.num_bytes(size) <= self.most


class Together:
    """Turns many searches at once.

    Args:
        step: the step of all searches, see `serving.decoding`. Its states can `follow` a
            `beam_index` without a step, `join` another state, tell their `num_bytes`, and `trim`
            them.
        memory: a `Memory`, in which all states fit; None: there is no such limit.
        clock: returns seconds, by which lanes take turns.
    """

    def __init__(
        self,
        step: Callable,
        memory: Memory | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._step, self._memory, self._clock = step, memory, clock
        self._waiting: list[_Opening] = []
        self._lanes: dict[tuple[bool, int], _Lane] = {}  # by lightness and the number of beams
        self._seconds = {True: 0.0, False: 0.0}  # of the light lanes, and of the others

    def __len__(self) -> int:
        """Return the number of searches that go on, or wait for memory."""
        return len(self._waiting) + sum(map(len, self._lanes.values()))

    def begin(
        self,
        search: Search,
        parts: Iterator[tuple[int, tuple[Candidates, Any] | None]],
        size: Size = Size(),
        light: bool = True,
    ) -> None:
        """Let a search begin, in the next steps, as soon as there is memory for it.

        Its first step is its own, for its start may be longer than a token; then it goes on beside
        others.

        Args:
            search: the search.
            parts: does a part of the first step whenever it is asked, and yields how many tokens
                that took, and None or, with the last part, the candidates and the state.
            size: the `Size` of its state.
            light: whether it goes on beside light ones.
        """
        self._waiting.append(_Opening(search, parts, size, light))
        self._let_in()

    def step(self) -> None:
        """Let the searches of a lane take a step, or one of them a part of its first.

        If the step fails, they end, and each has the `error`.
        """
        self._let_in()
        key = min(self._lanes, key=self._turn_of)
        lane, begun = self._lanes[key], self._clock()
        lane.go_on(self._step)
        seconds = self._clock() - begun
        lane.seconds += seconds
        self._seconds[key[0]] += seconds
        if not len(lane):
            del self._lanes[key]

    def leave(self, search: Search) -> None:
        """Let a search end as it is."""
        self._waiting = [opening for opening in self._waiting if opening.search is not search]
        for lane in self._lanes.values():
            lane.leave(search)
        self._lanes = {key: lane for key, lane in self._lanes.items() if len(lane)}

    def _turn_of(self, key):
        """Return what is least for the lane whose turn it is."""
        return self._seconds[key[0]], self._lanes[key].seconds

    def _let_in(self):
        """Let searches in for which there is memory, in their order. A light search does not wait
        behind a heavy one that waits for the end of other heavy ones."""
        heavy_waits = False
        for opening in [*self._waiting]:
            if heavy_waits and not opening.light:
                continue
            if self._has_room(opening):
                self._waiting.remove(opening)
                self._lane_of(opening).openings.append(opening)
            elif opening.light or not self._holds(False):
                return
            else:
                heavy_waits = True

    def _holds(self, light):
        """Return whether a lane of the kind goes on."""
        return any(kind == light for kind, _ in self._lanes)

    def _lane_of(self, opening):
        """Return the lane of an opening, which begins behind the others of its kind."""
        if opening.lane not in self._lanes:
            kind = opening.light
            if not self._holds(kind) and self._holds(not kind):
                self._seconds[kind] = max(self._seconds.values())
            beside = [lane.seconds for (light, _), lane in self._lanes.items() if light == kind]
            self._lanes[opening.lane] = _Lane(opening.search.num_beams, min(beside, default=0.0))
        return self._lanes[opening.lane]

    def _has_room(self, opening):
        """Return whether there is memory for a search; there always is if it is the only one."""
        if self._memory is None or not self._lanes:
            return True
        if self._held_with(opening) <= self._memory.most:
            return True
        for lane in self._lanes.values():
            with contextlib.suppress(MemoryError):  # smaller buffers need some beside these
                lane.trim()
        return self._held_with(opening) <= self._memory.most

    def _held_with(self, opening):
        """Return the bytes of all states, when all that goes on has grown, with an opening."""
        sizes = {key: lane.size for key, lane in self._lanes.items()}
        sizes[opening.lane] = opening.size.beside(sizes.get(opening.lane, Size()))
        held = {key: lane.num_bytes for key, lane in self._lanes.items()}
        return sum(
            max(self._memory.num_bytes(size), held.get(key, 0)) for key, size in sizes.items()
        )


@dataclass(eq=False)
class _Opening:
    """A search that has not taken its first step; see `Together.begin`."""

    search: Search
    parts: Iterator
    size: Size
    light: bool

    @property
    def lane(self):
        """The key of its lane."""
        return self.light, self.search.num_beams


@dataclass(eq=False)
class _Member:
    """A part of the sources of a lane's state.

    Attributes:
        search: the search to which they belong; None if it has ended.
        size: the `Size` of its state at first.
        count: how many sources they are.
        followed: whether the state has followed the search's `beam_index` already.
    """

    search: Search | None
    size: Size
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

    Args:
        num_beams: how many.
        seconds: the first value of this attribute.

    Attributes:
        seconds: how long its steps took, beside those of the other lanes.
        openings: those that have not taken their first step, the next one first.
    """

    def __init__(self, num_beams, seconds):
        self._num_beams, self.seconds, self.openings = num_beams, seconds, deque()
        self._members, self._state = [], None
        self._read = 0  # tokens since the last step

    def __len__(self):
        return len(self.openings) + len(self._going())

    def _going(self):
        return [member for member in self._members if member.search is not None]

    @property
    def size(self):
        """The `Size` of the state when all have begun, and grown."""
        size = Size()
        for opening in self.openings:
            size = size.beside(opening.size)
        for member in self._going():
            count, most = member.count, member.size
            size = size.beside(
                Size(count * self._num_beams, most.tokens, count, most.source_length)
            )
        return size

    @property
    def num_bytes(self):
        """The bytes of the state as it is."""
        return 0 if self._state is None else self._state.num_bytes

    def trim(self):
        """Let go of memory that nothing needs."""
        if self._state is not None:
            self._state.trim()

    def leave(self, search):
        self.openings = deque(opening for opening in self.openings if opening.search is not search)
        for member in self._members:
            if member.search is search:
                member.search = None
        self._let_go()

    def go_on(self, step):
        """Let the searches take a step, or the first of the openings a part of its own."""
        if self.openings and (self._read < PAUSE or not self._going()):
            self._open(self.openings[0])
        else:
            self._read = 0
            self._step(step)
            self._let_go()

    def _let_go(self):
        """Let go of the state when no search goes on: an opening may take long to make another."""
        if not self._going():
            self._members, self._state = [], None

    def _open(self, opening):
        search = opening.search
        try:
            tokens, begun = next(opening.parts)
            self._read += max(tokens, LEAST)
            if begun is None:
                return
            candidates, state = begun
            search.take(candidates)
            if not search.is_over:
                state.follow(search.beam_index)
                self._join(opening, state)
        except Exception as error:
            search.error = error
        self.openings.popleft()

    def _join(self, opening, state):
        going = self._going()
        if self._state is None:
            self._state = state
        else:
            if len(going) < len(self._members):  # rows of ended ones are free for these
                rows = self._rows()
                for member in going:
                    member.count, member.followed = len(member.search.token_ids), True
                self._members = going
                self._state.follow(rows, 0)  # which it has done even where memory runs out
            self._state.join(state)
        search = opening.search
        self._members.append(_Member(search, opening.size, len(search.token_ids)))

    def _rows(self):
        """Return the rows of the state that the searches read."""
        rows, begin = [], 0
        for member in self._members:
            if member.search is not None:
                rows.append(member.beam_index(begin, self._num_beams))
            begin += member.count * self._num_beams
        return np.concatenate(rows)

    def _step(self, step):
        going = self._going()
        searches = [member.search for member in going]
        try:
            candidates, self._state = step(
                np.concatenate([search.token_ids for search in searches]),
                self._rows(),
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
            part = candidates
            if len(going) > 1:
                part = candidates.of(
                    slice(first, first + member.count), member.search.num_candidates
                )
            try:
                member.search.take(part)
            except Exception as error:  # of what chooses its tokens
                member.search.error = error
            first += member.count
            if member.search.is_over:
                member.search = None

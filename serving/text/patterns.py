r"""Regular expressions, and sets of texts, as automata over the bytes of UTF-8.

    delta(q, b) -> q',   a text is allowed if its bytes lead from state 0 to an accepting one

Python's own parser reads the expression, so it means the same as in `re.fullmatch`: classes, \d \w
\s, groups, alternatives, repetitions, and the flags i, s, x. Not supported are back references,
lookahead, lookbehind, atomic groups, possessive repetitions, and anchors, except ^ at the start and
$ at the end, which have no effect here.

Reference: Thompson 1968, https://doi.org/10.1145/363347.363387 (the automaton of an expression);
Rabin and Scott 1959, https://doi.org/10.1147/rd.32.0114 (one state for each set of its states)
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]  # has no stubs
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Self

import numpy as np

from .encoding import require_text

MOST_NODES, MOST_STATES = 50_000, 20_000
MOST_GROUPS = 1000
DEAD = -1
SURROGATES = 0xD800, 0xE000
LAST = 0x10FFFF
CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
FLAGS = re.IGNORECASE | re.DOTALL | re.ASCII | re.VERBOSE | re.UNICODE


class Pattern:
    """A finite automaton that accepts the allowed texts; state 0 is the first.

    Args:
        next_states: for each state a dictionary, byte -> state.
        accepting: the states in which a text may end.

    Attributes:
        next_states: (Q, 256) int32, -1 for bytes that no allowed text has there.
        accepts: (Q,) booleans.
    """

    def __init__(self, next_states: Sequence[Mapping[int, int]], accepting: Iterable[int]):
        self.next_states = np.full((len(next_states), 256), DEAD, np.int32)
        for row, following in zip(self.next_states, next_states):
            row[list(following)] = list(following.values())
        self.accepts = np.zeros(len(next_states), bool)
        self.accepts[list(accepting)] = True

    def read(self, text: str) -> int:
        """Return the state after a text, -1 if no allowed text begins with it."""
        state = 0
        for byte in text.encode():
            state = self.next_states[state, byte]
            if state == DEAD:
                return DEAD
        return int(state)

    def allows(self, text: str) -> bool:
        """Whether a text is allowed."""
        state = self.read(text)
        return state != DEAD and bool(self.accepts[state])

    @classmethod
    def of_expression(cls, expression: str) -> Self:
        """Return the pattern of the texts that a regular expression matches as a whole.

        Raises:
            ValueError: if it is not a regular expression, uses an unsupported feature, or needs too
                large an automaton.
        """
        require_text("regex", expression)
        try:
            if expression.count("(") > MOST_GROUPS:  # groups are read by recursion
                raise _Refused(f"has more than {MOST_GROUPS} groups")
            tree = parser.parse(expression)
            nodes = _Nodes()
            end = nodes.add_all(_without_anchors(list(tree)), 0, tree.state.flags)
            return cls(*_deterministic(nodes, end))
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"regex {_short(expression)} can not be read: {error}.") from error
        except _Refused as error:
            raise ValueError(f"regex {_short(expression)} {error}.") from error

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Self:
        """Return the pattern of these texts and no other.

        Raises:
            ValueError: if there is no text, one is not a string that UTF-8 can encode, or they are
                too many.
        """
        next_states, accepting = [{}], set()
        for text in texts:
            require_text("choices", text)
            state = 0
            for byte in text.encode():
                if byte not in next_states[state]:
                    next_states[state][byte] = len(next_states)
                    next_states.append({})
                state = next_states[state][byte]
            accepting.add(state)
            if len(next_states) > MOST_STATES:
                raise ValueError(f"choices must have {MOST_STATES:,} bytes together at most.")
        if not accepting:
            raise ValueError("choices must be one text at least; received none.")
        return cls(next_states, accepting)


class _Refused(Exception):
    """The reason why an expression has no automaton here."""


class _Nodes:
    """A nondeterministic automaton while it is built.

    Attributes:
        edges: for each node a list of (first byte, last byte, node).
        free: for each node the list of nodes that it reaches without a byte.
    """

    def __init__(self):
        self.edges, self.free = [[]], [[]]

    def new(self):
        if len(self.edges) >= MOST_NODES:
            raise _Refused("is too large: repeat less")
        self.edges.append([])
        self.free.append([])
        return len(self.edges) - 1

    def add_all(self, items, begin, flags):
        """Add parts that follow each other after a node; return the node at their end."""
        for kind, value in items:
            begin = self._add(kind, value, begin, flags)
        return begin

    def _add(self, kind, value, begin, flags):
        if kind in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            return self._add_characters(_ranges(kind, value, flags), begin)
        if kind is codes.SUBPATTERN:
            _, added, taken, items = value
            return self.add_all(items, begin, (flags | added) & ~taken)
        if kind is codes.BRANCH:
            end = self.new()
            for items in value[1]:
                self.free[self.add_all(items, begin, flags)].append(end)
            return end
        if kind in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            return self._repeat(*value, begin, flags)
        raise _Refused(f"holds {str(kind).lower()}, which no finite automaton knows")

    def _repeat(self, least, most, items, begin, flags):
        for _ in range(least):
            begin = self.add_all(items, begin, flags)
        if most is codes.MAXREPEAT:
            again = self.new()
            self.free[begin].append(again)
            self.free[self.add_all(items, again, flags)].append(again)
            end = self.new()
            self.free[again].append(end)
            return end
        end = self.new()
        for _ in range(most - least):
            self.free[begin].append(end)
            begin = self.add_all(items, begin, flags)
        self.free[begin].append(end)
        return end

    def _add_characters(self, ranges, begin):
        end, known = self.new(), {}
        known[()] = end
        for first, last in ranges:
            for sequence in _utf8(first, last):
                for place in range(len(sequence) - 1, 0, -1):  # from its end: suffixes are shared
                    rest = sequence[place:]
                    if rest not in known:
                        known[rest] = self.new()
                        self.edges[known[rest]].append((*sequence[place], known[rest[1:]]))
                self.edges[begin].append((*sequence[0], known[sequence[1:]]))
        return end


def _without_anchors(items):
    """The items of an expression without ^ at its start and $ at its end."""
    if items and items[0] == (codes.AT, codes.AT_BEGINNING):
        items = items[1:]
    if items and items[-1] == (codes.AT, codes.AT_END):
        items = items[:-1]
    return items


def _ranges(kind, value, flags):
    """Return the code points of one character of an expression, as (first, last) pairs."""
    if flags & ~FLAGS:
        raise _Refused("has other flags than a, i, s, u and x")
    if kind is codes.ANY:
        return _found_by_re(".", flags)
    if kind is not codes.IN:
        if kind is codes.LITERAL and flags & re.IGNORECASE:
            source = _source(kind, value)
            return [
                (ord(character), ord(character))
                for character in re.findall(source, chr(value) + _cased(), flags)
            ]
        value = [(codes.LITERAL, value)]
        value = [(codes.NEGATE, None), *value] if kind is codes.NOT_LITERAL else value
    plain = all(code is codes.LITERAL or code is codes.RANGE for code, _ in value)
    if plain and not flags & re.IGNORECASE:
        pairs = [part if isinstance(part, tuple) else (part, part) for _, part in value]
        return [part for first, last in pairs for part in _real(first, last)]
    return _found_by_re(f"[{''.join(_source(*part) for part in value)}]", flags)


def _source(kind, value):
    """Return the source of a part of a character class."""
    if kind is codes.NEGATE:
        return "^"
    if kind is codes.CATEGORY:
        return CATEGORIES[value]
    if kind is codes.RANGE:
        return "-".join(f"\\U{code_point:08x}" for code_point in value)
    return f"\\U{value:08x}"


@lru_cache(maxsize=64)
def _found_by_re(source, flags):
    """Return the code points that an expression of one character matches, found by `re`."""
    first, behind = SURROGATES
    spans = (
        match.span() for match in re.finditer(f"{source}+", _all_characters(), flags & ~re.VERBOSE)
    )
    gap = behind - first
    parts = []
    for begin, end in spans:
        if begin < first:
            parts.append((begin, min(end, first) - 1))
        if end > first:
            parts.append((max(begin, first) + gap, end - 1 + gap))
    return parts


@lru_cache(maxsize=1)
def _all_characters():
    """Return all characters in their order."""
    first, behind = SURROGATES
    return "".join(map(chr, [*range(first), *range(behind, LAST + 1)]))


@lru_cache(maxsize=1)
def _cased():
    """Return all characters with an upper-case or a lower-case form."""
    return "".join(
        character
        for character in _all_characters()
        if character.lower() != character or character.upper() != character
    )


def _real(first, last):
    """Yield a range of code points without the surrogates, which UTF-8 can not encode."""
    if first < SURROGATES[0]:
        yield first, min(last, SURROGATES[0] - 1)
    if last >= SURROGATES[1]:
        yield max(first, SURROGATES[1]), last


def _utf8(first, last):
    """Yield the byte sequences of a range of code points, as tuples of (first, last) byte.

    Reference: https://github.com/BurntSushi/utf8-ranges
    """
    for longest in (0x7F, 0x7FF, 0xFFFF):  # the last of one, two and three bytes
        if first <= longest < last:
            yield from _utf8(first, longest)
            yield from _utf8(longest + 1, last)
            return
    for place in (1, 2, 3) if last > 0x7F else ():
        below = (1 << 6 * place) - 1
        if first & ~below != last & ~below:
            if first & below:
                yield from _utf8(first, first | below)
                yield from _utf8((first | below) + 1, last)
                return
            if last & below != below:
                yield from _utf8(first, (last & ~below) - 1)
                yield from _utf8(last & ~below, last)
                return
    yield tuple(zip(chr(first).encode(), chr(last).encode(), strict=True))


def _deterministic(nodes, end):
    """Subset construction: the next states of reachable sets of nodes, and accepting ones."""
    closed = {}

    def closure(targets):
        if targets not in closed:
            found, waiting = set(targets), list(targets)
            while waiting:
                new = [node for node in nodes.free[waiting.pop()] if node not in found]
                found.update(new)
                waiting += new
            closed[targets] = frozenset(found)
        return closed[targets]

    first = closure(frozenset([0]))
    states, waiting, next_states = {first: 0}, [first], []
    for here in waiting:  # the list grows in the loop
        following = {}
        for begin, behind, targets in _pieces(
            [edge for node in here for edge in nodes.edges[node]]
        ):
            there = closure(targets)
            if there not in states:
                if len(states) >= MOST_STATES:
                    raise _Refused("is too large: repeat less, or have fewer alternatives")
                states[there] = len(states)
                waiting.append(there)
            following.update(dict.fromkeys(range(begin, behind), states[there]))
        next_states.append(following)
    return next_states, [state for members, state in states.items() if end in members]


def _pieces(edges):
    """Yield ranges of bytes with the same targets: (first byte, byte after the last, nodes)."""
    changes = {}
    for first, last, node in edges:
        changes.setdefault(first, []).append((1, node))
        changes.setdefault(last + 1, []).append((-1, node))
    bounds, counts = sorted(changes), {}
    for begin, behind in zip(bounds, bounds[1:]):
        for change, node in changes[begin]:
            counts[node] = counts.get(node, 0) + change
            if not counts[node]:
                del counts[node]
        if counts:
            yield begin, behind, frozenset(counts)


def _short(expression):
    text = repr(expression)
    return text if len(text) <= 60 else f"{text[:59]}…"

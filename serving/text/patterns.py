r"""Regular expressions, and sets of texts, as automata over the bytes of UTF-8.

    delta(q, b) -> q',   a text is allowed if its bytes lead from state 0 to an accepting one

Python's own parser reads the expression, so it means the same as in `re.fullmatch`: classes, \d \w
\s, groups, alternatives, repetitions, and the flags i, s, x. Not supported are back references,
lookahead, lookbehind, atomic groups, possessive repetitions, and anchors, except ^ at the start and
$ at the end, which have no effect here.

A request may hold an expression, so its cost is bounded before it is paid: the characters and the
nesting before the expression is parsed, the parts of its automaton before that is built, and the
work of the subset construction, which can be exponential, while it goes on.

Reference: Thompson 1968, https://doi.org/10.1145/363347.363387 (the automaton of an expression);
Rabin and Scott 1959, https://doi.org/10.1147/rd.32.0114 (one state for each set of its states)
"""

import _sre  # type: ignore[import-not-found]  # what `re` itself takes for lower case
import bisect
import re
import threading
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from re import _casefix  # type: ignore[attr-defined]  # these have no stubs
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple, Self

import numpy as np

from .encoding import require_text

MOST_CHARACTERS, MOST_NESTED = 10_000, 100  # of an expression, and groups inside each other
MOST_PARTS = 50_000  # edges of a nondeterministic automaton, and ranges of classes
MOST_STATES = 20_000
MOST_WORK = 150_000  # edges and nodes that the subset construction visits
DEAD = -1
SURROGATES = 0xD800, 0xDFFF
LAST = 0x10FFFF
CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
POSIX = re.compile(r"(?s)\A\[.*?(?<!\\)(\[:[a-z]+:\])\Z")  # at the end of a class
PARSING = threading.Lock()  # filters of warnings belong to all threads
FLAGS = re.IGNORECASE | re.DOTALL | re.ASCII | re.VERBOSE | re.UNICODE


class Pattern:
    """A finite automaton that accepts the allowed texts; state 0 is the first.

    Args:
        next_states: (Q + 1, 256) int32: the state after each byte, -1 where no allowed text has
            that byte. The last row holds only -1, so that -1 is a state like another.
        accepting: the states in which a text may end.

    Attributes:
        next_states: as above.
        accepts: (Q,) booleans.

    Example:
        >>> from seqkeras.serving.text import Pattern
        >>> pattern = Pattern.of_expression(r"\\d{4}-\\d\\d")
        >>> bool(pattern.accepts[pattern.read("2014-05")])
        True
        >>> pattern.read("14-")  # no allowed text begins so
        -1
    """

    def __init__(self, next_states: np.ndarray, accepting: Iterable[int]):
        self.next_states = next_states
        self.accepts = np.zeros(len(next_states) - 1, bool)
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
        """Return whether a text is allowed."""
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
            _require_readable(expression)
            tree = _parsed(expression)
            items = _Reader().items(_without_anchors(list(tree)), tree.state.flags)
            if _size(items) > MOST_PARTS:
                raise _Refused("is too large: repeat less")
            nodes = _Nodes()
            end = nodes.add(items, 0)
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
        for text in dict.fromkeys(texts):
            require_text("choices", text)
            state = 0
            for byte in text.encode():
                if byte not in next_states[state]:
                    if len(next_states) >= MOST_STATES:
                        raise ValueError(
                            f"choices must have {MOST_STATES - 1:,} bytes together at most, those "
                            "of a common beginning once."
                        )
                    next_states[state][byte] = len(next_states)
                    next_states.append({})
                state = next_states[state][byte]
            accepting.add(state)
        if not accepting:
            raise ValueError("choices must be one text at least; received none.")
        table = np.full((len(next_states) + 1, 256), DEAD, np.int32)
        for row, following in zip(table, next_states):
            row[list(following)] = list(following.values())
        return cls(table, accepting)


class _Refused(Exception):
    """The reason why an expression has no automaton here."""


def _require_readable(expression):
    """Refuse what takes long to parse, or too many calls inside each other."""
    if len(expression) > MOST_CHARACTERS:
        raise _Refused(f"has more than {MOST_CHARACTERS:,} characters")
    level = 0
    for sign in re.findall(r"\\.|[()]|\[\^?\]?(?:\\.|[^]\\])*+\]?", expression, re.DOTALL):
        level += {"(": 1, ")": -1}.get(sign, 0)
        if level > MOST_NESTED:
            raise _Refused(f"has more than {MOST_NESTED} groups inside each other")
        if posix := POSIX.search(sign):
            raise _Refused(
                f"holds {posix[1]}, a class of POSIX, which Python reads as its letters: write "
                r"\d, \s, \w or a range such as a-z"
            )


def _parsed(expression):
    """Return Python's tree of an expression, without warnings of what `re` may read otherwise one
    day, such as a bracket in a class."""
    with PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return parser.parse(expression)


class _Class(NamedTuple):
    """The bytes of one character of a class, as a separate automaton.

    Attributes:
        nodes: for each node its edges (first byte, last byte, node): node 0 is the end, the last
            node the begin.
        size: the number of edges.
    """

    nodes: Sequence[Sequence[tuple[int, int, int]]]
    size: int


class _All(NamedTuple):
    """Items that follow each other."""

    items: Sequence[Any]


class _Any(NamedTuple):
    """Alternatives."""

    branches: Sequence[Any]


class _Repeat(NamedTuple):
    """An item from `least` to `most` times; None: any number of times."""

    least: int
    most: int | None
    item: Any


class _Reader:
    """Reads the items of a parsed expression."""

    def __init__(self):
        self._classes, self._ranges = {}, 0  # of all classes together

    def items(self, items, flags):
        """Return parts that follow each other as an item."""
        return _All([self._item(kind, value, flags) for kind, value in items])

    def _item(self, kind, value, flags):
        if kind in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            return self._class(kind, value, flags)
        if kind is codes.SUBPATTERN:
            _, added, taken, items = value
            return self.items(items, (flags | added) & ~taken)
        if kind is codes.BRANCH:
            return _Any([self.items(items, flags) for items in value[1]])
        if kind in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, items = value
            most = None if most is codes.MAXREPEAT else most
            return _Repeat(least, most, self.items(items, flags))
        raise _Refused(f"holds {str(kind).lower()}, which no finite automaton knows")

    def _class(self, kind, value, flags):
        if flags & ~FLAGS:
            raise _Refused("has other flags than a, i, s, u and x")
        parts = tuple(value) if kind is codes.IN else ((kind, value),)
        key = parts, flags & (re.IGNORECASE | re.ASCII | re.DOTALL)
        if key not in self._classes:
            ranges, negated = _parts(*key)
            self._ranges += len(ranges)
            if self._ranges > MOST_PARTS:
                raise _Refused("is too large: have fewer classes")
            ranges = _complement(ranges) if negated else ranges
            self._classes[key] = _automaton_of_ranges(
                _complement([*_complement(ranges), SURROGATES])
            )
        return self._classes[key]


def _size(item):
    """Return how many edges an item has, and repetitions of nothing."""
    match item:
        case _Class():
            return max(item.size, 1)
        case _All():
            return sum(map(_size, item.items))
        case _Any():
            return 1 + sum(map(_size, item.branches))
    count = item.least + 1 if item.most is None else item.most
    return 2 + count * (1 + _size(item.item))


class _Nodes:
    """A nondeterministic automaton while it is built.

    Attributes:
        edges: for each node a list of (first byte, last byte, node).
        free: for each node the set of nodes that it reaches without a byte.
    """

    def __init__(self):
        self.edges, self.free = [[]], [set()]

    def add(self, item, begin):
        """Add an item after a node; return the node at its end."""
        match item:
            case _Class():
                return self._add_class(item, begin)
            case _All():
                for inner in item.items:
                    begin = self.add(inner, begin)
                return begin
            case _Any():
                end = self._new()
                for branch in item.branches:
                    self.free[self.add(branch, begin)].add(end)
                return end
        return self._add_repeat(*item, begin)

    def _new(self):
        self.edges.append([])
        self.free.append(set())
        return len(self.edges) - 1

    def _add_repeat(self, least, most, item, begin):
        for _ in range(least):
            begin = self.add(item, begin)
        if most is None:
            again = self._new()
            self.free[begin].add(again)
            self.free[self.add(item, again)].add(again)
            end = self._new()
            self.free[again].add(end)
            return end
        end = self._new()
        for _ in range(most - least):
            self.free[begin].add(end)
            begin = self.add(item, begin)
        self.free[begin].add(end)
        return end

    def _add_class(self, item, begin):
        places = [self._new() for _ in item.nodes[:-1]] + [begin]
        for index, edges in zip(places, item.nodes):
            self.edges[index] += [(first, last, places[node]) for first, last, node in edges]
        return places[0]


def _without_anchors(items):
    """Return the items of an expression without ^ at its start and $ at its end."""
    if items and items[0] == (codes.AT, codes.AT_BEGINNING):
        items = items[1:]
    if items and items[-1] == (codes.AT, codes.AT_END):
        items = items[:-1]
    return items


def _parts(parts, flags):
    """Return code points of a class, as (first, last) pairs, and whether all others are meant."""
    negated = parts[0][0] in (codes.NEGATE, codes.NOT_LITERAL)
    ranges, whole = [], []
    for code, part in parts:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            ranges.append((part, part))
        elif code is codes.RANGE:
            ranges.append(part)
        elif code is codes.CATEGORY:
            whole += _category(CATEGORIES[part], flags & re.ASCII)
        elif code is codes.ANY:
            whole += [(0, LAST)] if flags & re.DOTALL else _complement([(10, 10)])
    if flags & re.IGNORECASE:
        whole += _other_cases(ranges, flags & re.ASCII)
    return ranges + whole, negated


def _complement(ranges):
    """Return all other code points, in order."""
    gaps, following = [], 0
    for first, last in sorted(ranges):
        if first > following:
            gaps.append((following, first - 1))
        following = max(following, last + 1)
    return [*gaps, (following, LAST)] if following <= LAST else gaps


@lru_cache(maxsize=2 * len(CATEGORIES))
def _category(source, flags):
    """Return the code points of a category, found by `re`."""
    spans = (match.span() for match in re.finditer(f"{source}+", _all_characters(), flags))
    return [(begin, end - 1) for begin, end in spans]


@lru_cache(maxsize=1)
def _all_characters():
    """Return all code points in their order."""
    return "".join(map(chr, range(LAST + 1)))


def _other_cases(ranges, is_ascii):
    """Return the code points that `re` does not tell from those of ranges when it ignores case."""
    cased, keys, by_key = _cases(bool(is_ascii))
    cases = set()
    for first, last in ranges:
        places = slice(bisect.bisect_left(cased, first), bisect.bisect_right(cased, last))
        cases.update(keys[places])
    return [(point, point) for key in cases for point in by_key[key]]


@lru_cache(maxsize=2)
def _cases(is_ascii):
    """Return the cased code points, the key of each, and the code points of each key.

    Code points are equal for `re` without case if their keys are: the least of the lower case and
    of the other lower cases that `re` adds to it.
    """
    is_cased, lower = (
        (_sre.ascii_iscased, _sre.ascii_tolower)
        if is_ascii
        else (_sre.unicode_iscased, _sre.unicode_tolower)
    )
    others = {} if is_ascii else _casefix._EXTRA_CASES
    cased = [point for point in range(LAST + 1) if is_cased(point)]
    keys = [min(low, *others.get(low, (low,))) for low in map(lower, cased)]
    by_key: dict[int, list[int]] = {}
    for point, key in zip(cased, keys):
        by_key.setdefault(key, []).append(point)
    return cased, keys, by_key


def _automaton_of_ranges(ranges):
    """Return the `_Class` of ranges of code points, with equal beginnings and ends shared."""
    tree: dict[tuple, Any] = {}
    for first, last in ranges:
        for sequence in _utf8(first, last):
            inner = tree
            for part in sequence:
                inner = inner.setdefault(part, {})
    nodes: dict[tuple, int] = {(): 0}

    def shared(inner):
        edges = tuple((*part, shared(following)) for part, following in inner.items())
        return nodes.setdefault(edges, len(nodes))

    begin = tuple((*part, shared(following)) for part, following in tree.items())
    numbers = [*nodes, begin]
    return _Class(numbers, sum(map(len, numbers)))


def _utf8(first, last):
    """Yield the byte sequences of a range of code points, as tuples of (first, last) byte.

    Reference: https://github.com/BurntSushi/utf8-ranges
    """
    for longest in (0x7F, 0x7FF, 0xFFFF):  # the last of one, two and three bytes
        if first <= longest < last:
            yield from _utf8(first, longest)
            yield from _utf8(longest + 1, last)
            return
    for index in (1, 2, 3) if last > 0x7F else ():
        below = (1 << 6 * index) - 1
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
    """Return the subset construction: the next states of reachable sets of nodes, and accepting
    ones."""
    closed, work = {}, 0

    def closure(targets):
        nonlocal work
        if targets not in closed:
            reached, waiting = set(targets), list(targets)
            while waiting:
                free = nodes.free[waiting.pop()]
                work += len(free)
                waiting += free - reached
                reached |= free
            closed[targets] = frozenset(reached)
        return closed[targets]

    first = closure(frozenset([0]))
    states, waiting, next_states = {first: 0}, [first], []
    for subset in waiting:  # the list grows in the loop
        edges = [edge for node in subset for edge in nodes.edges[node]]
        work += len(subset) + len(edges)
        row = np.full(256, DEAD, np.int32)
        for begin, behind, targets in _pieces(edges):
            work += len(targets)
            there = closure(targets)
            if there not in states:
                states[there] = len(states)
                waiting.append(there)
            row[begin:behind] = states[there]
            if len(states) > MOST_STATES or work > MOST_WORK:
                raise _Refused("is too large: repeat less, or have fewer alternatives")
        next_states.append(row)
    accepting = [state for members, state in states.items() if end in members]
    return np.stack([*next_states, np.full(256, DEAD, np.int32)]), accepting


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

"""The tokens that may follow so that a text matches a pattern.

    y_n may follow  if  delta(q(y_1 … y_(n-1)), y_n) can reach the end within the room that is left

The automaton of a pattern reads bytes; here it reads tokens. States from which the vocabulary can
not reach the end, or not within the room, are never entered.

Reference: Willard and Louf 2023, section 3, https://arxiv.org/abs/2307.09702
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .patterns import DEAD, Pattern
from .token_texts import token_texts

UNREACHABLE = np.iinfo(np.int32).max
"""The distance of a state from which the end can not be reached."""
MOST_AT_ONCE = 2_000_000  # entries of cached rows
MOST_VISITED = 30_000_000  # nodes of trees of texts, by all states together


class TokenAutomaton:
    """An automaton over the tokens of a tokenizer.

    Its states are the pattern's, and three more: `first`, before the first token of a text;
        `ended`, after <eos>; and `dead`, from which no allowed text can be reached. A text that
        follows another one, such as a prompt, begins in state `continuing`.

    Args:
        pattern: a `Pattern`.
        texts: texts of the first token and of later ones; see `text_trees`.
        end_id: id of <eos>, which may follow an allowed text.
        vocab_size: vocabulary size of the decoder, which may have more tokens than the tokenizer.

    Attributes:
        continuing, first, ended, dead: states.
        distances: (states,) int32, the fewest tokens to the end, with <eos>.

    Raises:
        ValueError: if the work of all states together would be too much.

    Reference: Willard and Louf 2023, section 3, https://arxiv.org/abs/2307.09702

    Example:
        >>> import numpy as np
        >>> from seqkeras.serving.text import CharacterTable, Pattern, TokenAutomaton, text_trees
        >>> letters = CharacterTable.learn(["yesno"])
        >>> pattern, end_id = Pattern.of_texts(["yes", "no"]), letters.id_of("<eos>")
        >>> automaton = TokenAutomaton(pattern, text_trees(letters), end_id, len(letters))
        >>> allowed = automaton.allowed(np.array(automaton.first), np.array(10))
        >>> [letters.token_of(int(token_id)) for token_id in np.flatnonzero(allowed)]
        ['n', 'y']
    """

    continuing = 0

    def __init__(
        self,
        pattern: Pattern,
        texts: tuple["TextTree", "TextTree"],
        end_id: int,
        vocab_size: int,
    ):
        self.pattern, self.end_id, self.vocab_size = pattern, end_id, vocab_size
        size = len(pattern.accepts)
        self.first, self.ended, self.dead = size, size + 1, size + 2
        self._first, self._later = texts
        self._rows = {}
        self._require_bounded()
        self.distances = self._distances()

    def writes(self, text: str) -> bool:
        """Return whether tokens can write an allowed text from state `first`."""
        state = self.first if not text else self.pattern.read(text)
        return bool(self.distances[state] == 1)

    def allowed(self, states: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Return which tokens may follow.

        Args:
            states: (...) integers.
            room: (...) number of tokens that may still follow, <eos> included.

        Returns:
            (..., V) booleans.
        """
        return self._gathered(states, 1) < np.expand_dims(room, -1)

    def advance(self, states: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Return the states after tokens, both (...)."""
        pairs = zip(np.ravel(states).tolist(), np.ravel(token_ids).tolist(), strict=True)
        following = [self._rows_of(state)[0][token_id] for state, token_id in pairs]
        return np.array(following, np.int32).reshape(np.shape(states))

    def next_states(self, states: np.ndarray) -> np.ndarray:
        """Return (..., V) the state after each token, from states (...)."""
        return self._gathered(states, 0)

    def _gathered(self, states, which):
        """Return (..., V) one of `_rows_of` for each state."""
        states = np.asarray(states)
        rows = np.stack([self._rows_of(state)[which] for state in states.ravel().tolist()])
        return rows.reshape(*states.shape, self.vocab_size)

    def _rows_of(self, state):
        """Return (V,) the state after each token, and (V,) its distance."""
        rows = self._rows.get(state)
        if rows is None:
            if 2 * len(self._rows) * self.vocab_size > MOST_AT_ONCE:
                self._rows = {}
            row = np.full(self.vocab_size, self.dead, np.int32)
            token_ids, following = self._edges(state)
            row[token_ids] = following
            rows = self._rows[state] = row, self.distances[row]
        return rows

    def _edges(self, state):
        """Return the tokens that may follow in the pattern, and the state after each."""
        size = len(self.pattern.accepts)
        if state > size:
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        texts, position = self._read_by(state)
        token_ids, following = texts.tokens(self.pattern.next_states, position)
        if self.pattern.accepts[position]:
            token_ids = np.append(token_ids, self.end_id)
            following = np.append(following, self.ended)
        return token_ids, following

    def _read_by(self, state):
        """Return the tree that a state reads, and the state of the pattern."""
        is_first = state == len(self.pattern.accepts)
        return (self._first, 0) if is_first else (self._later, state)

    def _require_bounded(self):
        """Estimate what `_distances` visits: the nodes below the first bytes that states allow."""
        alive = self.pattern.next_states != DEAD
        visited = int((alive @ self._later.sizes).sum())
        if visited > MOST_VISITED:
            raise ValueError(
                f"regex or choices: {len(self.pattern.accepts):,} states are too many for a "
                f"vocabulary of {self.vocab_size:,} tokens: repeat less, or allow fewer characters."
            )

    def _distances(self):
        """Visit all states that tokens reach, then go back from the end."""
        before = {self.first: [], self.continuing: [], self.ended: []}
        waiting = [self.first, self.continuing]
        for state in waiting:  # the list grows in the loop
            texts, position = self._read_by(state)
            following = texts.successors(self.pattern.next_states, position)
            if self.pattern.accepts[position]:
                before[self.ended].append(state)
            for successor in following.tolist():
                if successor not in before:
                    before[successor] = []
                    waiting.append(successor)
                before[successor].append(state)
        distances = np.full(self.dead + 1, UNREACHABLE, np.int32)
        distances[self.ended] = 0
        waiting = [self.ended]
        for state in waiting:
            for predecessor in before[state]:
                if distances[predecessor] == UNREACHABLE:
                    distances[predecessor] = distances[state] + 1
                    waiting.append(predecessor)
        return distances


def text_trees(tokenizer: Any) -> tuple["TextTree", "TextTree"]:
    """Return the `token_texts` of a tokenizer as trees, which its automata share.

    Args:
        tokenizer: a tokenizer of `seqkeras.serving.text`.

    Returns:
        The tree of the texts of a first token, and the tree of the texts of later ones. They are
        one tree where a token has the same text everywhere.

    Example:
        >>> from seqkeras.serving.text import CharacterTable, text_trees
        >>> first, later = text_trees(CharacterTable.learn(["yesno"]))
        >>> first is later  # a character has one text, wherever it stands
        True
        >>> int(first.sizes[ord("y")]), int(first.sizes[ord("z")])
        (1, 0)
    """
    first, later = token_texts(tokenizer)
    tree = TextTree(first)
    return tree, tree if later is first else TextTree(later)


class _Level(NamedTuple):
    """The nodes of a tree at one depth, in the order of their texts.

    Attributes:
        bytes: (n,) the last byte of each.
        children: (n + 1,) the nodes of the next level; node i has the entries from i to i + 1.
        ends: (n + 1,) the tokens whose text ends in a node, likewise.
        token_ids: their ids.
    """

    bytes: np.ndarray
    children: np.ndarray
    ends: np.ndarray
    token_ids: np.ndarray


class TextTree:
    """The texts of tokens as a tree of bytes, so that what several begin with is read once.

    Args:
        texts: texts of the tokens; None for those without.

    Attributes:
        sizes: (256,) the number of nodes below each first byte, which is one of them.
    """

    def __init__(self, texts: Sequence[bytes | None]):
        known = sorted((text, index) for index, text in enumerate(texts) if text)
        token_ids = np.array([index for _, index in known], np.int64)
        lengths = np.array([len(text) for text, _ in known], np.int64)
        width = int(lengths.max(initial=1))
        padded = b"".join(text.ljust(width, b"\0") for text, _ in known)
        rows = np.frombuffer(padded, np.uint8).reshape(-1, width)
        shared = np.zeros(len(rows), np.int64)  # bytes that a text shares with the one before
        if len(rows) > 1:
            differs = rows[1:] != rows[:-1]
            unlike = np.where(differs.any(1), differs.argmax(1), width)
            shared[1:] = np.minimum(unlike, np.minimum(lengths[1:], lengths[:-1]))
        self._levels, self.sizes = [], np.zeros(256, np.int64)
        for depth in range(width):
            begins = np.flatnonzero((lengths > depth) & (shared <= depth))  # each node's first row
            deeper = np.flatnonzero((lengths > depth + 1) & (shared <= depth + 1))
            ending = np.flatnonzero(lengths == depth + 1)
            bounds = np.append(begins, len(rows))
            self._levels.append(
                _Level(
                    rows[begins, depth],
                    np.searchsorted(deeper, bounds),
                    np.searchsorted(ending, bounds),
                    token_ids[ending],
                )
            )
            self.sizes += np.bincount(rows[begins, 0], minlength=256)

    def tokens(self, next_states: np.ndarray, state: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens whose text a state of a pattern allows, and the state after each."""
        token_ids, states = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for level, nodes, after in self._reached(next_states, state):
            places, counts = _expanded(level.ends, nodes)
            token_ids.append(level.token_ids[places])
            states.append(np.repeat(after, counts))
        return np.concatenate(token_ids), np.concatenate(states)

    def successors(self, next_states: np.ndarray, state: int) -> np.ndarray:
        """Return the states that some token leads to, in order."""
        is_reached = np.zeros(len(next_states), bool)
        for level, nodes, after in self._reached(next_states, state):
            is_reached[after[level.ends[nodes + 1] > level.ends[nodes]]] = True
        return np.flatnonzero(is_reached)

    def _reached(self, next_states, state):
        """Yield each level, its nodes that a state allows, and the state after each."""
        nodes = np.arange(len(self._levels[0].bytes))
        after = np.full(len(nodes), state, np.int32)
        for level in self._levels:
            after = next_states[after, level.bytes[nodes]]
            alive = after != DEAD
            nodes, after = nodes[alive], after[alive]
            if not len(nodes):
                return
            yield level, nodes, after
            nodes, counts = _expanded(level.children, nodes)
            after = np.repeat(after, counts)


def _expanded(bounds, nodes):
    """Return the entries of nodes, node i's from bounds[i] to bounds[i + 1], and counts."""
    counts = bounds[nodes + 1] - bounds[nodes]
    ends = np.cumsum(counts)
    total = ends[-1] if len(ends) else 0
    return np.arange(total) + np.repeat(bounds[nodes] - ends + counts, counts), counts

"""Which tokens may follow so that a text matches a pattern.

    y_n may follow  if  delta(q(y_1 … y_(n-1)), y_n) can reach the end within the room that is left

The automaton of a pattern reads bytes; here it reads tokens. States from which the vocabulary can
not reach the end, or not within the room, are never entered.

Reference: Willard and Louf 2023, section 3, https://arxiv.org/abs/2307.09702
"""

from collections.abc import Sequence

import numpy as np

from .patterns import DEAD, Pattern

UNREACHABLE = np.iinfo(np.int32).max  # distance of a state from which the end can not be reached
MOST_AT_ONCE = 2_000_000  # entries of cached rows


class TokenAutomaton:
    """An automaton over the tokens of a tokenizer.

    Its states are those of the pattern, and three more: `first`, before the first token of a text;
        `ended`, after <eos>; and `dead`, from which no allowed text can be reached. A text that
        follows another one, such as a prompt, begins in state `continuing`.

    Args:
        pattern: a `Pattern`.
        texts: of the tokens, see `token_texts`.
        end_id: of <eos>, which may follow an allowed text.
        vocab_size: of the decoder, which may have more tokens than the tokenizer.

    Attributes:
        continuing, first, ended, dead: states.
        distances: (states,) int32, the fewest tokens to the end, with <eos>.
    """

    continuing = 0

    def __init__(
        self,
        pattern: Pattern,
        texts: tuple[Sequence[bytes | None], Sequence[bytes | None]],
        end_id: int,
        vocab_size: int,
    ):
        self.pattern, self.end_id, self.vocab_size = pattern, end_id, vocab_size
        size = len(pattern.accepts)
        self.first, self.ended, self.dead = size, size + 1, size + 2
        self._first, self._later = (_SortedTexts(tokens) for tokens in texts)
        self._next_of_bytes = np.full((size + 1, 256), size, np.int32)  # its last row: dead
        self._next_of_bytes[:-1] = np.where(pattern.next_states == DEAD, size, pattern.next_states)
        self._rows = {}
        self.distances = self._distances()

    def writes(self, text: str) -> bool:
        """Whether tokens can write an allowed text from state `first`."""
        state = self.first if not text else self.pattern.read(text)
        return bool(self.distances[state] == 1)

    def allowed(self, states: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Return which tokens may follow.

        Args:
            states: (...) integers.
            room: (...) how many tokens may still follow, with <eos>.

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
        texts, here = (self._first, 0) if state == size else (self._later, state)
        token_ids, following = texts.read(self._next_of_bytes, here)
        if self.pattern.accepts[here]:
            token_ids = np.append(token_ids, self.end_id)
            following = np.append(following, self.ended)
        return token_ids, following

    def _distances(self):
        """Visit all states that tokens reach, then go back from the end."""
        before = {self.first: [], self.continuing: [], self.ended: []}
        waiting = [self.first, self.continuing]
        for state in waiting:  # the list grows in the loop
            _, following = self._edges(state)
            for successor in np.unique(following).tolist():
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


class _SortedTexts:
    """The texts of tokens, sorted, so that texts with the same first byte are adjacent."""

    def __init__(self, texts):
        known = sorted((text, place) for place, text in enumerate(texts) if text)
        self.token_ids = np.array([place for _, place in known], dtype=np.int64)
        self.lengths = np.array([len(text) for text, _ in known], dtype=np.int64)
        self.bytes = np.zeros((len(known), self.lengths.max(initial=1)), np.uint8)
        for row, (text, _) in zip(self.bytes, known):
            row[: len(text)] = bytearray(text)
        self.bounds = np.searchsorted(self.bytes[:, 0], np.arange(257))

    def read(self, next_of_bytes, state):
        """Return the tokens whose text a state allows, and the state after each."""
        dead = len(next_of_bytes) - 1
        begins = np.flatnonzero(next_of_bytes[state] != dead)
        rows = np.concatenate(
            [np.arange(self.bounds[begin], self.bounds[begin + 1]) for begin in begins]
            or [np.zeros(0, np.int64)]
        )
        states = np.full(len(rows), state, np.int32)
        places, longest = np.arange(len(rows)), self.lengths[rows].max(initial=0)
        for place in range(longest):
            places = places[(self.lengths[rows[places]] > place) & (states[places] != dead)]
            if not len(places):
                break
            states[places] = next_of_bytes[states[places], self.bytes[rows[places], place]]
        alive = states != dead
        return self.token_ids[rows[alive]], states[alive]

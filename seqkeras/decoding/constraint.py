"""Restrict results to a regular expression, or to a set of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from keras import ops

from seqkeras.serving.text import UNREACHABLE, Pattern, TokenAutomaton, text_trees

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.tensors import Tensor

MOST = 50_000_000  # entries: states times tokens


class Constraint:
    """The tokens that may follow, in greedy search, beam search and sampling alike.

        log p(y) = log P(allowed) + log p(y | allowed)

    P is the model's probability of all that may follow; p(y | allowed) is what processors make of
    the model's probabilities of these. So a score tells how well a result fits the model, and a
    beam search finds the best that is allowed. A result ends before there is no room for its end.

    Args:
        automaton: a `seqkeras.serving.text.TokenAutomaton`.

    Raises:
        ValueError: if it is too large for a tensor.

    Reference: Willard and Louf 2023, section 3, https://arxiv.org/abs/2307.09702

    Example:
        >>> from seqkeras.decoding import Constraint
        >>> from seqkeras.tokenizers import CharacterTable
        >>> letters = CharacterTable.learn(["no", "yes"])
        >>> constraint = Constraint.of_choices(["yes", "no"], letters, letters.id_of("<eos>"))
        >>> constraint.shortest  # "n", "o", <eos>
        3
    """

    def __init__(self, automaton: TokenAutomaton):
        size = len(automaton.distances) * automaton.vocab_size
        if size > MOST:
            raise ValueError(
                f"Constraint: states times tokens must be {MOST:,} at most; received {size:,}. "
                "Repeat less in the regular expression, or have fewer choices."
            )
        table = automaton.next_states(np.arange(len(automaton.distances)))
        # Most tokens lead nowhere: equal columns are stored once.
        columns, classes = np.unique(table, axis=1, return_inverse=True)
        self.shortest = int(automaton.distances[automaton.first])
        self.first, self.behind = automaton.first, automaton.continuing
        self.next_states = ops.convert_to_tensor(columns.astype("int32"))  # (states, C)
        self.classes = ops.convert_to_tensor(classes.ravel().astype("int32"))  # (V,)
        self.distances = ops.convert_to_tensor(automaton.distances)  # (states,)

    @classmethod
    def of_regex(
        cls, regex: str, tokenizer: Tokenizer, end_id: int, vocab_size: int | None = None
    ) -> Self:
        """Return the constraint to results whose whole text a regular expression matches.

        Args:
            regex: the expression; see `seqkeras.serving.text.patterns` for its syntax.
            tokenizer: a tokenizer of `seqkeras.tokenizers`.
            end_id: the id of `<eos>`.
            vocab_size: vocabulary size of the model; None for the tokenizer's.

        Raises:
            ValueError: if regex does not follow this syntax, or the tokenizer can not write any
                matching text.
        """
        return cls._of(Pattern.of_expression(regex), tokenizer, end_id, vocab_size)

    @classmethod
    def of_choices(
        cls,
        choices: Sequence[str],
        tokenizer: Tokenizer,
        end_id: int,
        vocab_size: int | None = None,
    ) -> Self:
        """Return the constraint to results that are one of some texts.

        Args:
            choices: the texts.
            tokenizer, end_id, vocab_size: see `of_regex`.

        Raises:
            ValueError: if the tokenizer can write none of the texts.
        """
        return cls._of(Pattern.of_texts(choices), tokenizer, end_id, vocab_size)

    @classmethod
    def _of(
        cls, pattern: Pattern, tokenizer: Tokenizer, end_id: int, vocab_size: int | None
    ) -> Self:
        size = len(tokenizer) if vocab_size is None else vocab_size
        automaton = TokenAutomaton(pattern, text_trees(tokenizer), end_id, size)
        if automaton.distances[automaton.first] == UNREACHABLE:
            raise ValueError("Constraint: the tokenizer can write none of the texts allowed.")
        return cls(automaton)

    def begin(self, beams: Tensor, prompt_lengths: Tensor) -> Tensor:
        """Return (B, K) int32 states before any token; `beams` are (B, K) int32 zeros."""
        first = ops.where(prompt_lengths > 0, self.behind, self.first)
        return beams + ops.cast(first, "int32")[:, None]

    def allowed(self, states: Tensor, room: Tensor) -> Tensor:
        """Return (B, K, V) booleans: after the token the result can still end within the room."""
        distances = ops.take(self.distances, ops.take(self.next_states, states, axis=0), axis=0)
        return ops.take(distances < room, self.classes, axis=-1)

    def advance(self, states: Tensor, token_ids: Tensor) -> Tensor:
        """Return the (B, K) states after tokens."""
        columns = ops.take(self.classes, token_ids, axis=0)
        following = ops.take(self.next_states, states, axis=0)  # (B, K, C)
        return ops.take_along_axis(following, columns[..., None], axis=-1)[..., 0]

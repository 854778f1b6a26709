"""Constraints on generated texts: a list of choices, or a regular expression."""

import functools

import numpy as np

from ..checks import shown
from ..decoding import Constraint
from ..manifest import MANIFEST, BundleError
from ..text import UNREACHABLE, Pattern, TokenAutomaton, text_trees

AT_ONCE = 8  # cached automata, each of which takes milliseconds to seconds to build


class Constraints:
    """Makes constraints of a search from regular expressions and choices.

    Args:
        tokenizer: tokenizer of the texts.
        end_id: id of <eos>.
        vocab_size: vocabulary size of the decoder.
    """

    def __init__(self, tokenizer, end_id, vocab_size):
        self._tokenizer, self._end_id, self._vocab_size = tokenizer, end_id, vocab_size
        self._of_regex = functools.lru_cache(AT_ONCE)(self._of_regex)
        self._of_choices = functools.lru_cache(AT_ONCE)(self._of_choices)

    def automaton(self, who, regex, choices):
        """Return the `TokenAutomaton` of `regex` or `choices`; None without both.

        Raises:
            ValueError: beginning with `who`, if both are given, one is invalid, or the tokenizer
                can not write any of the texts, or one of the choices.
        """
        if regex is not None and choices is not None:
            raise ValueError(f"{who}: regex and choices exclude each other; give one of them.")
        try:
            if regex is not None:
                if not isinstance(regex, str):
                    raise ValueError(f"regex must be a string; received {shown(regex)}.")
                return self._of_regex(regex)
            return None if choices is None else self._of_choices(_texts(choices))
        except ValueError as error:
            raise ValueError(f"{who}: {error}") from error

    @functools.cached_property
    def _texts(self):
        return text_trees(self._tokenizer)

    def _over_tokens(self, pattern):
        return TokenAutomaton(pattern, self._texts, self._end_id, self._vocab_size)

    def _of_regex(self, regex):
        automaton = self._over_tokens(Pattern.of_expression(regex))
        if automaton.distances[automaton.first] == UNREACHABLE:
            raise ValueError(
                f"regex {shown(regex)} matches no text that the bundle's tokenizer can write."
            )
        return automaton

    def _of_choices(self, choices):
        automaton = self._over_tokens(Pattern.of_texts(choices))
        for choice in choices:
            if not automaton.writes(choice):
                raise ValueError(f"choices: the bundle's tokenizer can not write {shown(choice)}.")
        return automaton


def require_constraint(folder, manifest, constraints):
    """Raise a BundleError unless the manifest's default, if it has one, is a constraint.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        constraints: its `Constraints`.
    """
    try:
        automaton = constraints.automaton("decoding", manifest.decoding.regex, None)
        room = [manifest.limits.target_length]
        constraint_of("decoding", automaton, [True], room)
    except ValueError as error:
        raise BundleError(str(error), where=folder, subject=MANIFEST) from error


def constraint_of(who, automaton, first, room):
    """Return the `Constraint` of a batch, None for no automaton.

    Args:
        who: for errors.
        automaton: a `TokenAutomaton`, or None.
        first: for each source, whether its text follows no other text.
        room: for each source, the most tokens of its text, with <eos>.

    Raises:
        ValueError: if there is no room for any text.
    """
    if automaton is None:
        return None
    states = np.where(first, automaton.first, automaton.continuing)
    for needed, most in zip(automaton.distances[states].tolist(), room):
        if needed > most:
            text = (
                "no text that it allows can be written"
                if needed == UNREACHABLE
                else (f"the shortest text that it allows has {needed} tokens with <eos>")
            )
            raise ValueError(f"{who}: regex or choices need more room than {most} tokens: {text}.")
    return Constraint(automaton, states, np.asarray(room))


def _texts(choices):
    if not isinstance(choices, (list, tuple)) or not all(
        isinstance(choice, str) for choice in choices
    ):
        raise ValueError(f"choices must be a list of strings; received {shown(choices)}.")
    return tuple(choices)

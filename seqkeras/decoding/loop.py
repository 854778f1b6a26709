"""The one loop that generates token ids, for any decoder that keeps the step contract of
`seqkeras.decoding`.

Shape letters here: B batch, K beams, T `max_length`, V vocabulary, S source length.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from seqkeras.decoding.checks import count, require
from seqkeras.decoding.processors import Prefix, Prompt
from seqkeras.values import known_numbers

if TYPE_CHECKING:
    from seqkeras.decoding.constraint import Constraint
    from seqkeras.tensors import Tensor

CONSTRAINED = "constrained"  # entry of `progress`: the state of each beam in a constraint


@dataclasses.dataclass(frozen=True)
class StateEntry:
    """One tensor of a decoder's state.

    Args:
        name: its key in the state.
        per: "beam" or "source".
        shape: shape without batch and beam; a name stands for a length, such as "source_length". A
            length named "cache_length" is room for tokens, and an entry named "position" (B, K)
            counts the tokens that are there; "window_length" is room for the last tokens alone.
        dtype: dtype of the tensor.

    Example:
        >>> from seqkeras.decoding import StateEntry
        >>> StateEntry("hidden", per="beam", shape=(7,))
        StateEntry(name='hidden', per='beam', shape=(7,), dtype='float32')
        >>> StateEntry("keys", per="source", shape=("source_length", 7)).dtype
        'float32'
    """

    name: str
    per: str
    shape: tuple
    dtype: str = "float32"


class Search(abc.ABC):
    """The part that differs between ways of decoding: how beams continue, and when a row is done.

    A subclass writes the four abstract methods. `progress` is the state of the search, a flat
    dictionary of tensors with the batch first.

    Attributes:
        num_beams: K, the number of beams of each row.
        end_id: the id of the token that ends a sequence; -1 if none does.

    Example:
        >>> from seqkeras.decoding import Search
        >>> sorted(Search.__abstractmethods__)
        ['begin', 'extend', 'results', 'unfinished']
    """

    num_beams = 1
    end_id = -1  # of the token that ends a sequence; -1 if none does

    @abc.abstractmethod
    def begin(self, batch_size: Any) -> dict[str, Tensor]:
        """Return the `progress` before the first step."""

    @abc.abstractmethod
    def unfinished(self, progress: dict[str, Tensor]) -> Tensor:
        """Return (B,) booleans; the loop ends when no row is unfinished."""

    @abc.abstractmethod
    def extend(
        self,
        log_probs: Tensor,
        others: Sequence[Tensor],
        prefix: Prefix,
        progress: dict[str, Tensor],
    ) -> tuple[Tensor, Tensor | None, dict[str, Tensor]]:
        """Add a token to every beam.

        Args:
            log_probs: (B, K, V) float32, of the token after the prefix.
            others: the step's results after the logits.
            prefix: `Prefix`, the beams' tokens so far.
            progress: the value before the step.

        Returns:
            (B, K) token ids; the (B, K) beams that they continue, or None if each continues
            itself; and the new `progress`.
        """

    @abc.abstractmethod
    def results(self, token_ids: Tensor, progress: dict[str, Tensor]) -> Any:
        """Return the results, from the (B, K, T) tokens of the beams and `progress`."""


def decode(
    step: Callable[..., Any],
    state: Mapping[str, Tensor],
    search: Search,
    *,
    start_id: int | Tensor,
    max_length: int,
    state_entries: Sequence[StateEntry] | None = None,
    processors: Sequence[Callable[[Tensor, Prefix], Tensor]] = (),
    prompt: tuple[Tensor, Tensor] | None = None,
    constraint: Constraint | None = None,
) -> Any:
    """Run the loop: step, process, extend, reorder, until all rows are finished or have T tokens.

    Args:
        step: the decoder's step: `seqkeras.decoding` begins with its contract.
        state: its initial state; per-beam entries (B, 1, ...).
        search: a `Search`.
        start_id: the id of `<bos>`, or (B,) ids, one for each row.
        max_length: T, the longest result, `<eos>` and prompt included.
        state_entries: list of `StateEntry`, one for each entry of the state; None: the attribute
            `state_entries` of the model that `step` is a method of. Without either, one beam can
            be searched: every entry counts as per beam, and the room of a cache is not checked.
        processors: functions of logits, see `seqkeras.decoding.processors`.
        prompt: None, or (token_ids (B, P), lengths (B,)): the tokens with which each row begins.
            Their log-probability counts as 0.
        constraint: a `Constraint` on results after their prompts; None: any result. It applies
            before the processors.

    Returns:
        What `search.results` returns.

    Raises:
        ValueError: if max_length is no positive integer, the prompt has another shape or batch, or
            is longer than max_length, an id known already is not in the vocabulary of the model
            that `step` is a method of, state_entries are missing or do not name the state's
            entries, a per-beam entry does not have one beam, a constraint allows no result so
            short, or a cache has no room for max_length more tokens. While a graph is traced, the
            number of tokens in a cache is not known, and counts as 0.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import decode
        >>> from seqkeras.decoding.beam import beam_search
        >>> probs = np.array([[0.1, 0.5, 0.4], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]])  # from, to
        >>> step = lambda token_ids, state: ((ops.take(np.log(probs), token_ids, axis=0),), state)
        >>> search = beam_search(num_beams=1, n_best=1, max_length=4, end_id=0)
        >>> token_ids, lengths, _ = decode(
        ...     step, {"source": np.zeros((1, 1))}, search, start_id=0, max_length=4
        ... )
        >>> ops.convert_to_numpy(token_ids).tolist()
        [[[1, 0, 0, 0]]]
    """
    loop = Loop(search, max_length, processors, prompt, constraint)
    initial, fixed = begun(step, state, loop, start_id, state_entries, prompt)

    def advance(length, last, token_ids, state, progress):
        (logits, *others), after = step(last, state | fixed)
        state = {name: after[name] for name in state}
        return loop.advance(logits, others, length, token_ids, state, progress)

    _, _, token_ids, _, progress = ops.while_loop(loop.unfinished, advance, initial)
    return search.results(token_ids, progress)


def begun(
    step: Callable[..., Any],
    state: Mapping[str, Tensor],
    loop: Loop,
    start_id: int | Tensor,
    state_entries: Sequence[StateEntry] | None = None,
    prompt: tuple[Tensor, Tensor] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Tensor]]:
    """Return the variables before the first step of a `Loop`; `decode` describes the arguments.

    Returns:
        What the loop carries into the first step, and what of the state is per source.
    """
    model = getattr(step, "__self__", None)
    if state_entries is None:
        state_entries = getattr(model, "state_entries", None)
    _require_vocabulary(model, start_id, loop.search.end_id, prompt)
    state, fixed = _split(state, state_entries, loop.search.num_beams)
    _require_batch(prompt, state | fixed)
    limit = getattr(model, "position_limit", None)
    _require_room(state | fixed, state_entries or (), loop.max_length, limit)
    return loop.begin(batch_size_of(state | fixed), start_id, state), fixed


class Loop:
    """The work of a loop before its steps and after each step.

    It carries the number of tokens so far; the (B, K) last tokens; the (B, K, T) tokens; the
    decoder's state, as far as it is per beam; and the progress of the search.

    Args:
        search, max_length, processors, prompt, constraint: see `decode`.

    Raises:
        ValueError: if max_length is no positive integer, the prompt has another shape, is longer
            or has lengths, known already, that are not within it, or there is no room for any
            result that the constraint allows.
    """

    def __init__(
        self,
        search: Search,
        max_length: int,
        processors: Sequence[Callable[[Tensor, Prefix], Tensor]] = (),
        prompt: tuple[Tensor, Tensor] | None = None,
        constraint: Constraint | None = None,
    ):
        require("decode", count("max_length", max_length))
        if constraint is not None:
            demand = f"max_length must be {constraint.shortest} at least, by the constraint"
            holds = max_length >= constraint.shortest
            require("decode", (holds, f"{demand}; received {max_length}"))
        self.constraint = constraint
        self.search, self.max_length, self.processors = search, max_length, list(processors)
        self.prompt = None if prompt is None else _checked(prompt, max_length)
        if self.prompt is not None:
            self.processors.append(self.prompt)
        self.positions = ops.arange(max_length, dtype="int32")

    def begin(
        self, batch_size: Any, start_id: int | Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Any, ...]:
        """Return the variables before the first step."""
        beams = ops.zeros((batch_size, self.search.num_beams), "int32")
        return (
            ops.convert_to_tensor(0, "int32"),
            beams + ops.reshape(ops.cast(start_id, "int32"), (-1, 1)),
            beams[..., None] + 0 * self.positions,
            state,
            self.begin_search(batch_size),
        )

    def begin_search(self, batch_size: Any) -> dict[str, Tensor]:
        """Return the `progress` before the first step: the search's entries, and the
        constraint's states."""
        progress = self.search.begin(batch_size)
        if self.constraint is None:
            return progress
        beams = ops.zeros((batch_size, self.search.num_beams), "int32")
        lengths = self._prompt_lengths(beams)
        return progress | {CONSTRAINED: self.constraint.begin(beams, lengths)}

    def unfinished(
        self,
        length: Tensor,
        last: Tensor,
        token_ids: Tensor,
        state: Mapping[str, Tensor],
        progress: dict[str, Tensor],
    ) -> Tensor:
        """Return whether there is a step to take."""
        return ops.logical_and(length < self.max_length, ops.any(self.search.unfinished(progress)))

    def advance(
        self,
        logits: Tensor,
        others: Sequence[Tensor],
        length: Tensor,
        token_ids: Tensor,
        state: Mapping[str, Tensor],
        progress: dict[str, Tensor],
    ) -> tuple[Any, ...]:
        """Return the variables after a step that returned logits (B, K, V), others and state."""
        prefix = Prefix(token_ids, length, self._prompt_lengths(token_ids[:, :, 0]))
        states = progress.get(CONSTRAINED)
        log_probs = self._log_probs(ops.cast(logits, "float32"), states, prefix)
        last, beam_index, progress = self.search.extend(log_probs, others, prefix, progress)
        if self.constraint is not None:
            states = states if beam_index is None else reorder(states, beam_index)
            after_prompt = prefix.after_prompt[:, None]
            states = ops.where(after_prompt, self.constraint.advance(states, last), states)
            progress = progress | {CONSTRAINED: states}
        if beam_index is not None:
            token_ids = reorder(token_ids, beam_index)
            state = {name: reorder(entry, beam_index) for name, entry in state.items()}
        token_ids = ops.where(self.positions == length, last[..., None], token_ids)
        return length + 1, last, token_ids, state, progress

    def _prompt_lengths(self, beams):
        return ops.zeros_like(beams[:, 0]) if self.prompt is None else self.prompt.lengths

    def _log_probs(self, logits, states, prefix):
        """Return (B, K, V) of the next token."""
        if self.constraint is None:
            return ops.log_softmax(self._processed(logits, prefix))
        allowed = self.constraint.allowed(states, self.max_length - prefix.length)
        allowed = ops.logical_or(allowed, ops.logical_not(prefix.after_prompt)[:, None, None])
        log_probs = ops.where(allowed, ops.log_softmax(logits), -np.inf)
        if not self.processors:
            return log_probs
        total = ops.logsumexp(log_probs, axis=-1, keepdims=True)
        return ops.log_softmax(self._processed(log_probs, prefix)) + total

    def _processed(self, logits, prefix):
        for processor in self.processors:
            logits = ops.cast(processor(logits, prefix), "float32")
        return logits


def generate(
    step: Callable[..., Any],
    state: Mapping[str, Tensor],
    choose: Callable[[Tensor, Tensor], Tensor],
    *,
    start_id: int | Tensor,
    end_id: int,
    max_length: int,
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return one sequence for each row: a token chosen at every step, until every row has ended.

    Args:
        step, state, start_id, max_length, options: see `decode`.
        choose: ((B, V) log-probabilities, the position) -> (B,) token ids.
        end_id: the id of `<eos>`.

    Returns:
        token_ids: (B, T) int32, prompt and `<eos>` included and zero after it.
        lengths: (B,) int32, prompt and `<eos>` included.
        scores: (B,) float32, the sums of the chosen tokens' log-probabilities, as they are after
            the processors.

    Raises:
        ValueError: see `decode`.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import generate
        >>> step = lambda token_ids, state: ((ops.one_hot(token_ids + 1, 6),), state)  # counts
        >>> most_probable = lambda log_probs, position: ops.argmax(log_probs, axis=-1)
        >>> options = {"start_id": 1, "end_id": 5, "max_length": 7}
        >>> result = generate(step, {"source": np.zeros((1, 1))}, most_probable, **options)
        >>> token_ids, lengths, scores = map(ops.convert_to_numpy, result)
        >>> token_ids.tolist(), lengths.tolist()
        ([[2, 3, 4, 5, 0, 0, 0]], [4])
    """
    search = OneSequence(choose, end_id)
    return decode(step, state, search, start_id=start_id, max_length=max_length, **options)


class OneSequence(Search):
    """One beam, which ends with its first `<eos>`.

    Args:
        choose, end_id: see `generate`.
    """

    def __init__(self, choose: Callable[[Tensor, Tensor], Tensor] | None, end_id: int):
        self.choose, self.end_id = choose, end_id

    def begin(self, batch_size: Any) -> dict[str, Tensor]:
        zeros = ops.zeros((batch_size,), "int32")
        return {"lengths": zeros, "scores": ops.cast(zeros, "float32"), "finished": zeros > 0}

    def unfinished(self, progress: dict[str, Tensor]) -> Tensor:
        return ops.logical_not(progress["finished"])

    def extend(
        self,
        log_probs: Tensor,
        others: Sequence[Tensor],
        prefix: Prefix,
        progress: dict[str, Tensor],
    ) -> tuple[Tensor, Tensor | None, dict[str, Tensor]]:
        log_probs, unfinished = log_probs[:, 0], self.unfinished(progress)
        token = ops.cast(self.choose(log_probs, prefix.length), "int32")
        token = ops.where(unfinished, token, 0)  # (B,)
        chosen = ops.take_along_axis(log_probs, token[:, None], axis=1)[:, 0]
        ends = ops.logical_and(token == self.end_id, prefix.after_prompt)
        progress = {
            "lengths": ops.where(unfinished, prefix.length + 1, progress["lengths"]),
            "scores": progress["scores"] + ops.where(unfinished, chosen, 0.0),
            "finished": ops.logical_or(progress["finished"], ends),
        }
        return token[:, None], None, progress

    def results(
        self, token_ids: Tensor, progress: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        return token_ids[:, 0], progress["lengths"], progress["scores"]


def batch_size_of(state: Mapping[str, Tensor]) -> Any:
    """Return how many rows a state has."""
    return ops.shape(next(iter(state.values())))[0]


def reorder(entry: Tensor, beam_index: Tensor) -> Tensor:
    """Return the (B, K, ...) entry of the beams (B, J) that continue: (B, J, ...)."""
    batch_size, num_beams, *rest = ops.shape(entry)
    rows = num_beams * ops.arange(batch_size, dtype="int32")[:, None] + beam_index
    return ops.take(ops.reshape(entry, (-1, *rest)), rows, axis=0)


def _require_room(state, state_entries, max_length, position_limit):
    """Refuse tokens that would not fit in a cache, or have no position, which a decoder in a traced
    graph can not check."""
    position = known_numbers(state["position"]) if "position" in state else None
    taken = 0 if position is None else np.max(position, initial=0)
    demand = (
        f"the model must have a position for each of max_length, {max_length}, tokens; it has "
        f"{position_limit}, and {taken} of them are taken"
    )
    require("decode", (position_limit is None or taken + max_length <= position_limit, demand))
    for entry in state_entries:
        if "cache_length" not in entry.shape:
            continue
        room = state[entry.name].shape[entry.shape.index("cache_length") - len(entry.shape)]
        holds = not isinstance(room, int) or taken + max_length <= room
        demand = (
            f"the state must have room for max_length, {max_length}, tokens; {entry.name} has "
            f"{room} places, and {taken} of them are taken"
        )
        require("decode", (holds, demand))


def _require_vocabulary(model, start_id, end_id, prompt):
    """Refuse ids that the model has no row for."""
    vocab_size = getattr(model, "target_vocab_size", getattr(model, "vocab_size", None))
    if vocab_size is None:
        return
    prompt_ids = () if prompt is None else prompt[0]
    for name, ids, lowest in (
        ("start_id", start_id, 0),
        ("end_id", end_id, Search.end_id),
        ("the prompt's ids", prompt_ids, 0),
    ):
        known = known_numbers(ids)
        if known is not None:
            wrong = known[(known < lowest) | (known >= vocab_size)]
            demand = f"{name} must be from {lowest} to {vocab_size - 1}; received {wrong[:1]}"
            require("decode", (not wrong.size, demand))


def _require_batch(prompt, state):
    """Refuse a prompt of more rows than the state has, or of fewer."""
    rows = next(iter(state.values())).shape[0]
    prompt_rows = None if prompt is None else np.shape(prompt[1])[0]
    demand = f"prompt must have a row for each of the state, {rows}; received {prompt_rows}"
    require("decode", (prompt_rows is None or rows in (None, prompt_rows), demand))


def _split(state, state_entries, num_beams):
    """Return the state per beam, repeated for all beams, and the state per source, unchanged."""
    state = {name: ops.convert_to_tensor(entry) for name, entry in state.items()}
    if state_entries is None:
        demand = "state_entries must say what is per beam, as a model's do, if there are more"
        require("decode", (num_beams == 1, f"{demand} beams than one; received None"))
        return state, {}
    per = {entry.name: entry.per for entry in state_entries}
    names = f"state_entries must name the state's entries, {sorted(state)}; received {sorted(per)}"
    require("decode", (per.keys() == state.keys(), names))
    carried = {name: entry for name, entry in state.items() if per[name] == "beam"}
    for name, entry in carried.items():
        demand = f"{name} must have shape (batch, 1, ...) at first; received {tuple(entry.shape)}"
        require("decode", (len(entry.shape) > 1 and entry.shape[1] in (None, 1), demand))
    fixed = {name: entry for name, entry in state.items() if name not in carried}
    if num_beams > 1:
        carried = {name: ops.repeat(tensor, num_beams, axis=1) for name, tensor in carried.items()}
    return carried, fixed


def _checked(prompt, max_length):
    """Return the prompt as the last processor, which overrules all others."""
    known = known_numbers(prompt[1])
    token_ids, lengths = (ops.cast(tensor, "int32") for tensor in prompt)
    shapes = tuple(token_ids.shape), tuple(lengths.shape)
    require(
        "decode",
        (
            (len(shapes[0]), len(shapes[1])) == (2, 1)
            and shapes[0][1] != 0
            and (shapes[0][0] == shapes[1][0] or None in (shapes[0][0], shapes[1][0])),
            f"prompt must be (token_ids (B, P), lengths (B,)); received {shapes[0]}, {shapes[1]}",
        ),
    )
    width = shapes[0][1]
    demand = f"prompt must not be longer than max_length, {max_length}; received {width} tokens"
    require("decode", (width is None or width <= max_length, demand))
    if width is not None and known is not None:
        demand = f"the prompt's lengths must be from 0 to {width}; received {known}"
        require("decode", (np.all((known >= 0) & (known <= width)), demand))
    return Prompt(token_ids, lengths)

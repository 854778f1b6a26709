"""The graphs of a bundle that generates, opened by role in onnxruntime.

What a cache holds stays in onnxruntime's own memory from step to step: 6 layers of 512 in float32,
16 texts, beam 4, 32 steps took 1.80 s of processor time so, and 1.88 as NumPy arrays. Every other
state goes as NumPy arrays: a GRU of 256 units and 11 steps took 1.1 ms so for one text, and 1.7
bound (onnxruntime 1.31.1, two cores). A run with caches computes only what is asked for, which
saves the attention weights that nobody wants; a smaller one does not earn the time to find out.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from .decoding import BEST, LOGITS, Candidates, Memory
from .manifest import MANIFEST, BundleError, Manifest
from .opening import Runtime, open_session
from .reprs import with_shapes
from .slots import CAPACITY, LENGTHS, SOURCE_LENGTH, Slots
from .slots import ROLE as SLOTS

ATTENTION, SCORES = "attention_weights", "logits"
# The outputs for what a search reads, by the names of `Candidates`.
OUTPUTS = {
    BEST: {"log_probs": "candidate_log_probs", "token_ids": "candidate_ids"},
    LOGITS: {"logits": SCORES},
}
HEADS = "attention_heads"  # of all layers
# The outputs for the values of the option `attention`.
SHOWN: dict[bool | str, dict] = {
    False: {},
    True: {"attention_weights": ATTENTION},
    "heads": {"attention_weights": HEADS},
}
FRAMES = "frames"  # what a graph reads instead of token ids
STEP = "decoder_step"
CACHE_LENGTH = "past_length"  # the axis that marks an input of a graph as a cache


@dataclass(frozen=True, eq=False)
class State:
    """The state that one step of decoding passes to the next.

    Attributes:
        beam: name -> (B, K, ...) array, one for each beam.
        caches: name -> OrtValue (B K, N, P, H), one for each beam: P tokens so far; or `Slots`,
            which have the entries of the sources too, and which a step changes.
        source: name -> (B, ...) array, one for each source.
        batch_size, num_beams: B, K.
    """

    beam: dict
    caches: Any
    source: dict
    batch_size: int
    num_beams: int = 1

    __repr__ = with_shapes

    def follow(self, beam_index: np.ndarray, num_tokens: int = 1) -> None:
        """Let the beams of `Slots` continue others, without a step; see `Slots`."""
        self.caches.follow(beam_index, num_tokens)

    def join(self, other: "State") -> None:
        """Append the sources of another state with as many beams, both with `Slots`."""
        self.caches.join(other.caches)

    def trim(self) -> None:
        """Let go of memory of the `Slots` that nothing needs."""
        self.caches.trim()

    @property
    def num_bytes(self) -> int:
        """The bytes of the `Slots`."""
        return self.caches.num_bytes


class EncoderDecoder:
    """An encoder graph, and a decoder graph of one step.

        encoder(token_ids, lengths) -> state, or encoder(frames, lengths) -> state
        decoder_step(token_ids, beam_index, k, state) -> candidates, state

    Args:
        folder: the bundle.
        manifest: its `Manifest`, which names the state.
        runtime: a `Runtime`, how they are run.

    Attributes:
        shares_steps: whether rows of different lengths may share a step, see
            `serving.decoding.Together`.
        memory: the `serving.decoding.Memory` of states, None if there is no limit.

    Raises:
        BundleError: if a graph is missing, can not be opened, or is not what the manifest says.
    """

    roles = ("encoder", STEP, SLOTS)

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        runtime = runtime or Runtime()
        self._decoder = _decoder(folder, manifest, runtime)
        self.shares_steps, self.memory = self._decoder.shares_steps, self._decoder.memory
        self._most_tokens = manifest.limits.target_length
        self._given = [name for name in manifest.beam_state if name not in self._decoder.caches]
        self._given += manifest.source_state
        encoder = runtime.graphs_of(manifest).get("encoder")
        takes = [spec.name for spec in encoder.inputs] if encoder else ()
        self._source = FRAMES if FRAMES in takes else "token_ids"
        inputs = {self._source, "lengths"}
        self._encoder = open_session(folder, manifest, "encoder", runtime, inputs, {*self._given})
        self.vocab_size, self.attends = self._decoder.vocab_size, self._decoder.attends
        self.attends_by_heads = self._decoder.attends_by_heads

    def __repr__(self) -> str:
        return f"EncoderDecoder({self._encoder!r}, {self._decoder.session!r})"

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> State:
        """Return the `State` before the first step.

        Args:
            source: (B, S) int64 token ids, or (B, S, F) float32 frames, padded on the right.
            lengths: (B,) int64.
        """
        inputs = {self._source: source, "lengths": lengths}
        entries = dict(zip(self._given, self._encoder.run(self._given, inputs)))
        return self._decoder.initial_state(len(source), entries, self._most_tokens)

    def step(
        self,
        token_ids: np.ndarray,
        beam_index: np.ndarray,
        k: int,
        state: State,
        reads: frozenset[str] = frozenset({BEST}),
        attention: bool | str = False,
    ) -> tuple[Candidates, State]:
        """Advance decoding by one step: see `serving.decoding`.

        Args:
            attention: whether to return attention weights; "heads": weights of each head.
        """
        return self._decoder.step(token_ids, beam_index, k, state, reads, attention)


class LanguageModel:
    """A decoder graph that takes one or several tokens of each beam.

        decoder_step(token_ids, beam_index, k, state) -> candidates after the last token, state

    Args:
        folder: the bundle.
        manifest: its `Manifest`, which names the state.
        runtime: a `Runtime`, how it is run.

    Attributes:
        shares_steps: whether rows of different lengths may share a step, see
            `serving.decoding.Together`.
        memory: the `serving.decoding.Memory` of states, None if there is no limit.

    Raises:
        BundleError: if the graph is missing, can not be opened, or is not what the manifest says.
    """

    roles = (STEP, SLOTS)

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self._decoder = _decoder(folder, manifest, runtime or Runtime())
        self.shares_steps, self.memory = self._decoder.shares_steps, self._decoder.memory
        self.vocab_size = self._decoder.vocab_size

    def __repr__(self) -> str:
        return f"LanguageModel({self._decoder.session!r})"

    def begin(self, batch_size: int, expected: int = 0) -> State:
        """Return the `State` before any token; `expected`: the most tokens that will be read, where
        that is known."""
        return self._decoder.initial_state(batch_size, {}, expected)

    def read(self, token_ids: np.ndarray, state: State) -> State:
        """Return the `State` after the (B, T) tokens of texts with one beam each."""
        rows = np.arange(len(token_ids))[:, np.newaxis]
        _, state = self.step(token_ids[:, np.newaxis], rows, 1, state)
        return state

    def step(
        self,
        token_ids: np.ndarray,
        beam_index: np.ndarray,
        k: int,
        state: State,
        reads: frozenset[str] = frozenset({BEST}),
    ) -> tuple[Candidates, State]:
        """Advance decoding by one step: see `serving.decoding`."""
        token_ids = token_ids.reshape(*beam_index.shape, -1)
        return self._decoder.step(token_ids, beam_index, k, state, reads)


def _decoder(folder, manifest, runtime):
    """Return the decoder of a bundle, with slots if it has them and the runtime can use them."""
    has_slots = SLOTS in runtime.graphs_of(manifest)
    kind = _DecoderInSlots if has_slots and runtime.writes_in_place else _Decoder
    return kind(folder, manifest, runtime)


class _Decoder:
    """The decoder graph of a model, and its state."""

    shares_steps = False
    role, feeds, cache_axis = STEP, ("token_ids", "beam_index", "k"), CACHE_LENGTH

    def __init__(self, folder, manifest, runtime):
        role = self.role
        names = {entry.name for entry in manifest.state}
        self.session = open_session(
            folder,
            manifest,
            role,
            runtime,
            {*self.feeds, *names},
            {*OUTPUTS[BEST].values(), SCORES, *(f"next_{name}" for name in manifest.beam_state)},
        )
        graph = runtime.graphs_of(manifest)[role]
        outputs = {spec.name: spec for spec in graph.outputs}
        self.attends, self.attends_by_heads = ATTENTION in outputs, HEADS in outputs
        self.vocab_size = outputs[SCORES].shape[-1]
        if not manifest.beam_state or not isinstance(self.vocab_size, int):
            raise BundleError(
                "a state per beam must be named, and the size of the vocabulary as the last axis "
                "of logits",
                where=folder,
                subject=MANIFEST,
            )
        inputs = {spec.name: spec for spec in graph.inputs}
        self._beam = {name: inputs[name] for name in manifest.beam_state}
        self.caches = {
            name: self._beam.pop(name)
            for name in manifest.beam_state
            if self.cache_axis in inputs[name].shape
        }
        self._source = {name: inputs[name] for name in manifest.source_state}
        self._next_beam, self._next_caches = (
            [f"next_{name}" for name in names] for names in (self._beam, self.caches)
        )
        most = runtime.cache_bytes
        self.memory = None if most is None else Memory(self._num_bytes, most)
        self._only_fetched = onnxruntime.RunOptions()
        self._only_fetched.only_execute_path_to_fetches = True
        # onnxruntime looks this entry up in each run; a missing one costs 75 us.
        self._only_fetched.add_run_config_entry("gpu_graph_id", "-1")

    def initial_state(self, batch_size, entries, expected=0):
        """Return the `State` before the first step: given entries, empty caches, zeros for
        others; `expected`: how many tokens may follow."""
        beam = {
            name: entries.pop(name) if name in entries else _zeros(spec, (batch_size, 1))
            for name, spec in self._beam.items()
        }
        caches = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(_zeros(spec, (batch_size,)))
            for name, spec in self.caches.items()
        }
        return State(beam, caches, entries, batch_size)

    def _num_bytes(self, size):
        """Return the bytes of states of a `Size`."""
        along = {self.cache_axis: size.tokens, SOURCE_LENGTH: size.source_length}
        return sum(
            count * _bytes_of(spec, along)
            for count, specs in (
                (size.rows, self._beam | self.caches),
                (size.sources, self._source),
            )
            for spec in specs.values()
        )

    def step(self, token_ids, beam_index, k, state, reads, attention=False):
        names = {name: output for part in reads for name, output in OUTPUTS[part].items()}
        names |= SHOWN[attention]
        k = min(k, self.vocab_size) if BEST in reads else 1
        outputs, state = self._run(token_ids, beam_index, k, state, [*names.values()])
        return Candidates(**dict(zip(names, outputs))), state

    def _run(self, token_ids, beam_index, k, state, names):
        """Return the named outputs, and the next state.

        Entries of a source are not tiled over beams; rows of sources that `beam_index` no longer
        names are dropped.
        """
        source = state.source
        if len(beam_index) != state.batch_size:
            rows = beam_index[:, 0] // state.num_beams
            source = {name: entry[rows] for name, entry in source.items()}
        arrays = {"token_ids": token_ids, "beam_index": beam_index, "k": np.array(k)}
        arrays |= state.beam | source
        count, names = len(names), [*names, *self._next_beam]
        if self.caches:
            outputs, caches = self._run_bound(arrays, state.caches, names)
        else:
            outputs, caches = self.session.run(names, arrays), {}
        beam = dict(zip(self._beam, outputs[count:]))
        return outputs[:count], State(beam, caches, source, *beam_index.shape)

    def _run_bound(self, arrays, caches, names):
        """Return the named outputs, and the next caches."""
        binding = self.session.io_binding()
        for name, array in arrays.items():
            binding.bind_cpu_input(name, np.asarray(array, order="C"))
        for name, cache in caches.items():
            binding.bind_ortvalue_input(name, cache)
        for name in names:
            binding.bind_output(name)
        self._bind_next(binding, caches)
        self.session.run_with_iobinding(binding, self._only_fetched)
        outputs = binding.get_outputs()
        results = [output.numpy() for output in outputs[: len(names)]]
        return results, dict(zip(self.caches, outputs[len(names) :]))

    def _bind_next(self, binding, caches):
        """Bind the next caches, to memory that the run makes."""
        for name in self._next_caches:
            binding.bind_output(name)


class _DecoderInSlots(_Decoder):
    """A decoder graph that writes into its caches; see `serving.slots`."""

    shares_steps = True
    role, feeds, cache_axis = SLOTS, ("token_ids", "k", LENGTHS), CAPACITY

    def initial_state(self, batch_size, entries, expected=0):
        slots = Slots(self.caches, self._source, entries, batch_size, expected)
        return State({}, slots, {}, batch_size)

    def _run(self, token_ids, beam_index, k, state, names):
        slots = state.caches
        tokens = token_ids.reshape(*beam_index.shape, -1)  # (B, K, T)
        num_tokens = tokens.shape[2]
        slots.follow(beam_index, num_tokens)
        lying = np.empty_like(tokens.reshape(-1, num_tokens))
        lying[slots.rows] = tokens
        lying = lying.reshape(*slots.rows.shape, *token_ids.shape[2:])
        arrays = {"token_ids": lying, "k": np.array(k)}
        if num_tokens > 1 and len(slots.lengths) > 1 and slots.lengths.any():
            outputs = self._by_rows(arrays, slots, names)
        else:
            arrays |= {LENGTHS: slots.lengths, **slots.source}
            outputs, _ = self._run_bound(arrays, slots.values(), names)
        slots.lengths += num_tokens
        state = State({}, slots, {}, *beam_index.shape)
        return [_in_order(output, slots.rows) for output in outputs], state

    def _by_rows(self, arrays, slots, names):
        """Return the named outputs of runs of a row each: onnxruntime reads several further tokens
        of one row only."""
        runs = []
        for row, (source, beam) in enumerate(np.ndindex(slots.rows.shape)):
            given = {name: entry[source : source + 1] for name, entry in slots.source.items()}
            given |= {
                "token_ids": arrays["token_ids"][source : source + 1, beam : beam + 1],
                "k": arrays["k"],
                LENGTHS: slots.lengths[row : row + 1],
            }
            outputs, _ = self._run_bound(given, slots.row(row), names)
            runs.append(outputs)
        return [
            np.concatenate(parts).reshape(*slots.rows.shape, *parts[0].shape[2:])
            for parts in zip(*runs)
        ]

    def _bind_next(self, binding, caches):
        """Bind the next caches to these, so that the run writes into them."""
        for name, after in zip(self.caches, self._next_caches):
            binding.bind_ortvalue_output(after, caches[name])


def _in_order(output, rows):
    """Return an output (B, K, ...) of rows as they lie, by source and beam."""
    return output.reshape(-1, *output.shape[2:])[rows]


def _bytes_of(spec, along):
    """Return the bytes of a row of an array, whose axes have sizes by their names."""
    sizes = (size if isinstance(size, int) else along.get(size, 1) for size in spec.shape)
    return math.prod(sizes) * np.dtype(spec.dtype).itemsize


def _zeros(spec, leading):
    """Return the initial value of a state: zeros, or an empty cache."""
    inner = (0 if size == CACHE_LENGTH else size for size in spec.shape[len(leading) :])
    return np.zeros((*leading, *inner), dtype=spec.dtype)

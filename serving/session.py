"""The graphs of a bundle, opened by role in onnxruntime.

State goes from step to step as NumPy arrays. With onnxruntime 1.31.1 that was faster than keeping
it in OrtValues (`run_with_ort_values`): on two cores, a GRU decoder of 256 units and 11 steps took
1.1 ms against 1.7 for one text and 13.7 ms against 14.5 for 64, the calls in turn. A state of many
megabytes, such as a long key/value cache, may turn that round: measure again.

Each graph has its own threads, and they do not spin while they wait: the spinning threads of the
encoder would take the cores from the decoder (beam 5 at batch 64: 39.9 ms with, 32.6 without).
"""

import numpy as np
import onnxruntime

from .decoding import Candidates
from .manifest import BundleError

QUIET = 4  # onnxruntime's log severity: fatal errors only; the others arrive as exceptions


class EncoderDecoder:
    """An encoder graph, and a decoder graph of one step.

        encoder(token_ids, lengths) -> state
        decoder_step(token_ids, beam_index, k, state) -> candidates, state

    Args:
        folder: the bundle.
        manifest: its `Manifest`, which names the state.
        threads: how many threads one operation may use; None: as many as there are cores.

    Raises:
        BundleError: if a graph is missing, can not be opened, or is not what the manifest says.
    """

    def __init__(self, folder, manifest, threads=None):
        self._beam_state, self._source_state = manifest.beam_state, manifest.source_state
        self._state = self._beam_state + self._source_state
        self._next_beam_state = tuple(f"next_{name}" for name in self._beam_state)
        self._encoder = _open(
            folder, manifest, "encoder", threads, {"token_ids", "lengths"}, {*self._state}
        )
        self._decoder_step = _open(
            folder,
            manifest,
            "decoder_step",
            threads,
            {"token_ids", "beam_index", "k", *self._state},
            {*_CANDIDATES, "attention_weights", "logits", *self._next_beam_state},
        )
        logits = next(s for s in manifest.graphs["decoder_step"].outputs if s.name == "logits")
        self.vocab_size = logits.shape[-1]
        if not self._beam_state or not isinstance(self.vocab_size, int):
            raise BundleError(
                f"{folder}: manifest.json must name a state per beam and the size of the "
                "vocabulary as the last axis of logits. Export the bundle again."
            )

    def encode(self, token_ids, lengths):
        """Return the state before the first step: a dict of arrays.

        Args:
            token_ids: (B, S) int64, padded on the right.
            lengths: (B,) int64.
        """
        outputs = self._encoder.run(self._state, {"token_ids": token_ids, "lengths": lengths})
        return dict(zip(self._state, outputs))

    def step(self, token_ids, beam_index, k, state, attention=False):
        """One step of decoding: `decoding.py` says what goes in and out.

        What the state holds per source is not tiled over beams; it loses the rows of sources that
        `beam_index` no longer names.
        """
        first = state[self._beam_state[0]]
        batch_size, beams = first.shape[:2]
        if len(beam_index) < batch_size:
            kept = beam_index[:, 0] // beams
            state = state | {name: state[name][kept] for name in self._source_state}
        k = np.array(min(k, self.vocab_size))
        inputs = state | {"token_ids": token_ids, "beam_index": beam_index, "k": k}
        wanted = _CANDIDATES + (("attention_weights",) if attention else ())
        outputs = self._decoder_step.run(wanted + self._next_beam_state, inputs)
        candidates = Candidates(*outputs[: len(wanted)])
        return candidates, state | dict(zip(self._beam_state, outputs[len(wanted) :]))


_CANDIDATES = ("candidate_log_probs", "candidate_ids")
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "string",
}


def _open(folder, manifest, role, threads, inputs, outputs):
    """Return the session of a graph that takes `inputs` and gives at least `outputs`."""
    if role not in manifest.graphs:
        raise BundleError(
            f"{folder}: manifest.json names no {role} graph. Export the bundle again."
        )
    graph = manifest.graphs[role]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = QUIET
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(
            folder / graph.file, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's exceptions have no base of their own
        raise BundleError(
            f"{folder}: onnxruntime {onnxruntime.__version__} can not open {graph.file}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    problems = [
        *_differences("input", graph.inputs, session.get_inputs()),
        *_differences("output", graph.outputs, session.get_outputs()),
    ]
    takes, gives = ({spec.name for spec in specs} for specs in (graph.inputs, graph.outputs))
    problems += [f"it lacks {name}" for name in sorted(inputs - takes | outputs - gives)]
    problems += [f"it needs {name}, which nobody gives" for name in sorted(takes - inputs)]
    if problems:
        raise BundleError(
            f"{folder}: {graph.file} is not the {role} graph expected: {'; '.join(problems)}. "
            "Export the bundle again."
        )
    return session


def _differences(kind, specs, arguments):
    """Yield where the manifest's specs and the graph's arguments disagree."""
    declared = {spec.name: (spec.dtype, spec.shape) for spec in specs}
    actual = {a.name: (_DTYPES.get(a.type, a.type), tuple(a.shape)) for a in arguments}
    for name in sorted(declared.keys() | actual.keys()):
        if name not in actual:
            yield f"{kind} {name} is in the manifest only"
        elif name not in declared:
            yield f"{kind} {name} is in the graph only"
        elif not _agree(declared[name], actual[name]):
            yield f"{kind} {name} is {_describe(*actual[name])}, not {_describe(*declared[name])}"


def _agree(declared, actual):
    (dtype, shape), (actual_dtype, actual_shape) = declared, actual
    sizes = [
        (a, b) for a, b in zip(shape, actual_shape) if isinstance(a, int) and isinstance(b, int)
    ]
    return (
        dtype == actual_dtype and len(shape) == len(actual_shape) and all(a == b for a, b in sizes)
    )


def _describe(dtype, shape):
    return f"{dtype} ({', '.join(map(str, shape))})"

"""Exported recurrent layers on padded batches, against Keras's own export and a hand-built graph.

    python -m benchmarks.recurrent_export [--json FILE] [--quick]

Three graphs hold the same weights:

    ours        `seqkeras.recurrent` as `export` converts it, a graph of (sequence, lengths) that
                makes the padding mask itself.
    keras       the same `keras.layers` as `keras.Model.export(format="onnx")` converts them, in a
                functional model of (sequence, mask). It gets the mask ready-made: the cheapest way,
                where a `Masking` layer would look at every value of the sequence.
    hand-built  `onnx.helper`: transposes around the native LSTM, GRU or RNN node, which takes the
                lengths as its `sequence_lens`.

They are compared at real steps only: at padded steps ours and the native node give zeros, Keras the
last output again. A batch of eight is padded to its longest row; a batch of one is not padded.
"""

import dataclasses
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

BATCHES = (8, 1)
LENGTH, FEATURES, UNITS = 128, 128, 256
THREADS = 2
TOLERANCE = 1e-4
WITHIN = 0.95  # the goal against the hand-built graph, at each batch size


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer, and how much faster than Keras's export it should be at batch 8.

    Args:
        name: in the table.
        layer: name of the class, here and in Keras.
        bidirectional: whether wrapped in `Bidirectional`.
        goal: against Keras.
    """

    name: str
    layer: str
    bidirectional: bool
    goal: float


CASES = (
    Case("lstm", "LSTM", False, 4),
    Case("gru", "GRU", False, 3),
    Case("bidirectional lstm", "LSTM", True, 4),
    Case("rnn", "SimpleRNN", False, 1),
    Case("bidirectional rnn", "SimpleRNN", True, 1),
)


def measure(options):
    """Build, check and time the graphs of every case; returns the rows."""
    import_tensorflow()
    sizes = (5, 3, 7) if options.quick else (LENGTH, FEATURES, UNITS)
    rounds = harness.rounds_of(options)
    rows = []
    for case in CASES:
        sessions = _sessions(case, *sizes[1:])
        for batch_size in BATCHES:
            rows += _compare(case, sessions, batch_size, *sizes[:2], rounds)
    print(
        f"measured on {harness.machine_of_exports()}; {THREADS} threads a graph, medians of "
        f"{rounds} rounds"
    )
    return rows


def _sessions(case, features, units):
    """Return the case's three graphs, opened: ours, keras, hand-built."""
    keras_model, weights = _keras_model(case, features, units)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keras.onnx"
        _export_by_keras(keras_model, path)
        return {
            "ours": _open(_our_graph(case, features, units, weights).whole().SerializeToString()),
            "keras": _open(path.read_bytes()),
            "hand-built": _open(_hand_built_graph(case, units, weights).SerializeToString()),
        }


def _compare(case, sessions, batch_size, length, features, rounds):
    """Check that the graphs agree at real steps, then time them; the rows against both rivals."""
    sequence, lengths = _batch(batch_size, length, features)
    real = np.arange(length) < lengths[:, np.newaxis]  # (B, T)
    given = {"sequence": sequence, "lengths": lengths, "mask": real}
    feeds = {
        name: {tensor.name: given[tensor.name] for tensor in session.get_inputs()}
        for name, session in sessions.items()
    }
    outputs = {name: session.run(None, feeds[name])[0] for name, session in sessions.items()}
    label = f"{case.name} b{batch_size} t{length}"
    differences = {
        rival: float(np.max(np.abs(outputs["ours"] - outputs[rival])[real]))
        for rival in ("keras", "hand-built")
    }
    told = ", ".join(f"{value:.1e} from {rival}" for rival, value in differences.items())
    if not max(differences.values()) <= TOLERANCE:
        raise ValueError(f"{label}: the graphs do not agree at real steps: ours differs by {told}")
    print(f"{label}: the graphs agree at {real.sum()} real steps; ours differs by {told}")

    times = harness.times_in_turn(
        {
            name: lambda number, name=name: sessions[name].run(None, feeds[name])
            for name in sessions
        },
        rounds,
    )
    goals = {"keras": case.goal if batch_size == 8 else None, "hand-built": WITHIN}
    return [
        harness.compare_times(
            f"{label} vs {rival}", times["ours"], times[rival], "ms", 1000, goals[rival]
        )
        for rival in differences
    ]


def _batch(batch_size, length, features):
    """Return (B, T, D) float32 sequences and (B,) int64 lengths from T / 2 to T; the first row is
    full."""
    rng = np.random.default_rng(batch_size)
    lengths = rng.integers(length // 2, length, batch_size, endpoint=True)
    lengths[0] = length
    real = np.arange(length) < lengths[:, np.newaxis]
    values = rng.normal(size=(batch_size, length, features)) * real[..., np.newaxis]
    return values.astype(np.float32), lengths


def _open(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    # Or the waiting threads of one graph would spin on the cores while the next is timed.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _our_graph(case, features, units, weights):
    from keras import ops

    from seqkeras import recurrent
    from seqkeras.export import onnx_graphs
    from seqkeras.masks import padding_mask
    from seqkeras.serving.manifest import TensorSpec

    layer = getattr(recurrent, case.layer)(units, return_sequences=True)
    layer = recurrent.Bidirectional(layer) if case.bidirectional else layer
    layer.build((None, None, features))
    layer.set_weights(weights)

    def outputs(sequence, lengths):
        mask = padding_mask(lengths, ops.shape(sequence)[1])
        return {"outputs": layer(sequence, mask=mask)}

    width = units * (1 + case.bidirectional)
    return onnx_graphs.convert(
        outputs,
        [
            TensorSpec("sequence", "float32", ("batch", "length", features)),
            TensorSpec("lengths", "int64", ("batch",)),
        ],
        [TensorSpec("outputs", "float32", ("batch", "length", width))],
        case.name,
    )


def _keras_model(case, features, units):
    """Return the same layer of Keras in a functional model of (sequence, mask), and its weights."""
    import keras

    keras.utils.set_random_seed(1)
    layer = getattr(keras.layers, case.layer)(units, return_sequences=True)
    layer = keras.layers.Bidirectional(layer) if case.bidirectional else layer
    sequence = keras.Input((None, features), name="sequence")
    mask = keras.Input((None,), dtype="bool", name="mask")
    model = keras.Model([sequence, mask], layer(sequence, mask=mask))
    model([np.zeros((2, 3, features)), np.ones((2, 3), bool)])  # `export` wants a model once called
    rng = np.random.default_rng(2)
    biased = [  # biases begin as zeros; these would show if they were mixed up
        weight + rng.normal(scale=0.1, size=weight.shape) if "bias" in variable.path else weight
        for variable, weight in zip(layer.weights, layer.get_weights(), strict=True)
    ]
    layer.set_weights(biased)
    return model, layer.get_weights()


def _export_by_keras(model, path):
    logger = logging.getLogger("tf2onnx")  # it would warn of every pass of its optimizer
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.export(path, format="onnx", verbose=False)
    finally:
        logger.setLevel(level)


def _hand_built_graph(case, units, weights):
    """Return the native node as an expert would place it, between transposes to and from
    time-major."""
    from onnx import TensorProto, helper, numpy_helper

    operator, attributes = {
        "LSTM": ("LSTM", {}),
        "GRU": ("GRU", {"linear_before_reset": 1}),
        "SimpleRNN": ("RNN", {"activations": ["Tanh"] * (1 + case.bidirectional)}),
    }[case.layer]
    directions = [weights[:3], weights[3:]] if case.bidirectional else [weights]
    arrays = [_native_weights(operator, *direction) for direction in directions]
    width = len(directions) * units
    constants = {name: np.stack(sides) for name, sides in zip("WRB", zip(*arrays))}
    node, tensor = helper.make_node, helper.make_tensor_value_info
    if case.bidirectional:
        constants["shape"] = np.array([0, 0, width])
        to_batch_major = [
            node("Transpose", ["Y"], ["both"], perm=[2, 0, 1, 3]),
            node("Reshape", ["both", "shape"], ["outputs"]),
        ]
    else:
        constants["axis"] = np.array([1])
        to_batch_major = [
            node("Squeeze", ["Y", "axis"], ["one"]),
            node("Transpose", ["one"], ["outputs"], perm=[1, 0, 2]),
        ]
    graph = helper.make_graph(
        [
            node("Transpose", ["sequence"], ["time_major"], perm=[1, 0, 2]),
            node("Cast", ["lengths"], ["sequence_lens"], to=TensorProto.INT32),
            node(
                operator,
                ["time_major", "W", "R", "B", "sequence_lens"],
                ["Y"],
                hidden_size=units,
                direction="bidirectional" if case.bidirectional else "forward",
                **attributes,
            ),
            *to_batch_major,
        ],
        case.name,
        [
            tensor("sequence", TensorProto.FLOAT, ["batch", "length", weights[0].shape[0]]),
            tensor("lengths", TensorProto.INT64, ["batch"]),
        ],
        [tensor("outputs", TensorProto.FLOAT, ["batch", "length", width])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def _native_weights(operator, kernel, recurrent_kernel, bias):
    """Return Keras's weights of one direction as W, R and B of the ONNX operator."""
    if operator == "LSTM":
        kernel, recurrent_kernel, bias = map(_iofc, (kernel, recurrent_kernel, bias))
    biases = bias.reshape(-1) if operator == "GRU" else np.concatenate([bias, np.zeros_like(bias)])
    return kernel.T, recurrent_kernel.T, biases


def _iofc(weight):
    """Return ONNX's order of the LSTM gates, from Keras's i, f, c, o."""
    i, f, c, o = np.split(weight, 4, axis=-1)
    return np.concatenate([i, o, f, c], axis=-1)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("recurrent_export", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=30, help="Timed rounds of each case. Default: 30."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

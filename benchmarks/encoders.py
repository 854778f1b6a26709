"""Encoders in onnxruntime: our graphs beside those that onnxruntime's own tool fuses.

    python -m benchmarks.encoders [--only minilm] [--optimum PYTHON] [--rounds N] [--json FILE]

Sizes of MiniLM-L6 and BERT-base, random weights, the same on both sides. The rival is `optimum`'s
export of them, fused by `onnxruntime.transformers`, in float32, and it waits for its threads as
suits it better: spinning, which is the default of onnxruntime, or not. What both say is compared
before it is timed. Ragged: texts of 8 to 128 tokens, as `Embed` splits them, and in one batch as
long as its longest. Two threads each. PYTHON is an interpreter with
benchmarks/requirements-optimum.txt, which needs an environment of its own; without it, this one.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import encoder_bundles, harness, training_steps

SHAPES = ((1, 16), (1, 128), (8, 128), (4, 384))
QUICK_SHAPES = ((2, 7),)
GOAL, RAGGED_GOAL = 1 / 1.05, 1.5
INT8 = ("int8", "int8-embedding")
TOLERANCE = 1e-4
THREADS = 2
SHORT = 128  # tokens of a batch that takes so little time that it is timed more often
RAGGED = {"texts": 64, "shortest": 8, "longest": 128}
RIVAL, RIVAL_SPINNING = "rival", "rival, spinning"


def measure(options):
    """Export, check and time the encoders; returns the rows."""
    training_steps.quiet_tensorflow()
    rows = []
    for name in encoder_bundles.SIZES:
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                rows += _measure_encoder(name, Path(folder), options)
    machine, rounds = harness.machine(**_versions()), harness.rounds_told(options)
    print(f"measured on {machine}, {THREADS} threads; {rounds}")
    return rows


def _measure_encoder(name, folder, options):
    from seqkeras.pretrained import save_hugging_face
    from seqkeras.serving.opening import Runtime

    model = encoder_bundles.make_model(name, options.quick)
    vocab_size = model.encoder.config["vocab_size"]
    save_hugging_face(model, folder / "transformers")
    arguments = [folder / "transformers", folder / "fused.onnx"]
    harness.run_python("-m", "benchmarks.fused_model", *arguments, python=options.optimum)
    encoder_bundles.export_model(model, folder / "bundle", INT8)
    del model
    ours = {
        precision: open_graph(folder / "bundle", Runtime(precision, THREADS))
        for precision in ("float32", *INT8)
    }
    rivals = {
        RIVAL: _open_rival(folder, spinning=False),
        RIVAL_SPINNING: _open_rival(folder, spinning=True),
    }
    rows = []
    for shape in QUICK_SHAPES if options.quick else SHAPES:
        inputs = draw_inputs(vocab_size, _draw_lengths(*shape))
        rows += _compare(name, ours, rivals, inputs, options)
    if name == "minilm":
        rounds = harness.rounds_of(options)
        rows.append(_ragged(name, folder / "bundle", ours["float32"], vocab_size, rounds))
    return rows


def open_graph(bundle, runtime):
    """Return the session of a bundle's graph, as `serving` opens it with a `Runtime`."""
    from seqkeras.serving.manifest import read_manifest
    from seqkeras.serving.opening import open_session

    manifest = read_manifest(bundle)
    names = {"token_ids", "lengths", "segment_ids"}
    return open_session(bundle, manifest, "model", runtime, names, {"output"})


def _open_rival(folder, spinning):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    # Threads that spin after a run would take the cores from ours, whose turn is next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(
        folder / "fused.onnx", options, providers=["CPUExecutionProvider"]
    )


def _draw_lengths(batch_size, length):
    """Return (B,) numbers of tokens, from length / 2 to length; the first row is full."""
    lengths = np.random.default_rng(batch_size * length).integers(
        length // 2, length, batch_size, endpoint=True
    )
    lengths[0] = length
    return lengths


def draw_inputs(vocab_size, lengths):
    """Return inputs of our graph: rows of so many tokens, padded to the longest."""
    shape = len(lengths), max(lengths)
    first = len(encoder_bundles.SPECIAL_TOKENS)
    token_ids = np.random.default_rng(lengths.sum()).integers(first, vocab_size, shape)
    token_ids[np.arange(shape[1]) >= lengths[:, np.newaxis]] = 0
    return {"token_ids": token_ids, "lengths": lengths, "segment_ids": np.zeros_like(token_ids)}


def _compare(name, ours, rivals, inputs, options):
    """Return the rows of one shape: each precision beside the rival in float32."""
    batch_size, length = inputs["token_ids"].shape
    label = f"b{batch_size} t{length}"
    mask = np.arange(length) < inputs["lengths"][:, np.newaxis]
    given = {
        "input_ids": inputs["token_ids"],
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": inputs["segment_ids"],
    }
    expected = _sentence_vectors(rivals[RIVAL].run(["last_hidden_state"], given)[0], mask)
    differences = {
        precision: np.abs(session.run(None, inputs)[0] - expected).max()
        for precision, session in ours.items()
    }
    listed = ", ".join(
        f"{precision} {difference:.1g}" for precision, difference in differences.items()
    )
    print(f"{name} {label}: greatest difference of a vector of length 1: {listed}", flush=True)
    if differences["float32"] > TOLERANCE:
        raise ValueError(f"{name} {label}: the graphs do not agree.")
    contenders = {
        precision: lambda _, session=session: session.run(None, inputs)
        for precision, session in ours.items()
    } | {
        rival: lambda _, session=session: session.run(["last_hidden_state"], given)
        for rival, session in rivals.items()
    }
    short = batch_size * length <= SHORT
    times = harness.times_in_turn(contenders, harness.rounds_of(options, short))
    rival = min(rivals, key=lambda rival: np.median(times[rival]))
    return [
        harness.compare_times(
            f"{name} {precision} {label} vs onnxruntime.transformers",
            times[precision],
            times[rival],
            "ms",
            1000,
            GOAL if precision == "float32" else None,
        )
        for precision in ours
    ]


def _sentence_vectors(hidden, mask):
    """Return a function: (B, T, D) -> (B, D), the mean over the real positions, of length 1."""
    weights = mask[..., np.newaxis]
    mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def _ragged(name, bundle, session, vocab_size, rounds):
    """Return texts of different lengths, split by `Embed`, and all padded to the longest."""
    from seqkeras import serving
    from seqkeras.serving.text import pad

    embed = serving.load(bundle, threads=THREADS)
    texts = _texts(vocab_size)

    def split(_):
        return np.stack([answer.vector for answer in embed(texts)])

    def one_batch(_):
        token_ids, lengths = pad([embed.encode(text).token_ids for text in texts])
        inputs = {
            "token_ids": token_ids,
            "lengths": lengths,
            "segment_ids": np.zeros_like(token_ids),
        }
        return session.run(None, inputs)[0]

    difference = np.abs(split(0) - one_batch(0)).max()
    if difference > TOLERANCE:
        raise ValueError(f"{name}: a batch changes the answers by {difference:.1g}.")
    times = harness.times_in_turn({"split": split, "one batch": one_batch}, rounds, warm_up=1)
    return harness.compare_times(
        f"{name} float32 {len(texts)} texts t{RAGGED['shortest']}…{RAGGED['longest']} vs one batch",
        times["split"],
        times["one batch"],
        "ms",
        1000,
        RAGGED_GOAL,
    )


def _texts(vocab_size):
    """Return texts whose numbers of tokens, the two special ones too, are drawn evenly."""
    draw = np.random.default_rng(2)
    lengths = draw.integers(RAGGED["shortest"], RAGGED["longest"], RAGGED["texts"], endpoint=True)
    words = encoder_bundles.make_words(vocab_size)
    return [" ".join(draw.choice(words, length - 2)) for length in lengths]


def _versions():
    import onnxruntime

    return {"onnxruntime": onnxruntime.__version__}


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("encoders", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=9, help=harness.ROUNDS_HELP.format(9)
    )
    parser.add_argument("--only", choices=encoder_bundles.SIZES, help="Size to measure alone.")
    parser.add_argument(
        "--optimum",
        default=sys.executable,
        metavar="PYTHON",
        help="Interpreter that has optimum-onnx. Default: this one.",
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""A GPT whose attention has a window, against the same GPT without one.

    python -m benchmarks.window_steps [--rounds N] [--json FILE] [--quick]

Both leave as graphs of onnxruntime, on one thread: a step behind some tokens, and a prompt read at
once. Without a window a step reads all tokens before it, and a prompt compares all pairs.
"""

import sys

import numpy as np
import onnxruntime

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

SIZES = {"vocab_size": 5000, "hidden_dim": 256, "num_layers": 4, "num_heads": 4}
QUICK = {"vocab_size": 11, "hidden_dim": 6, "num_layers": 2, "num_heads": 2}
WINDOW, LENGTHS, PROMPTS = 64, (16, 512, 4096), (512, 2048)
AT_ONCE = 10  # steps of a round


def measure(options):
    """Export and time both; returns the rows."""
    import_tensorflow()
    rounds = harness.rounds_of(options)
    sizes, window = (QUICK, 3) if options.quick else (SIZES, WINDOW)
    contenders = {"ours": _session(sizes, window), "whole": _session(sizes, None)}
    print(
        f"measured on {harness.machine_of_exports()}; 1 thread, medians of {rounds} rounds, window "
        f"{window}"
    )
    rows = []
    for length in LENGTHS:
        name = f"gpt step behind {length:,} tokens vs no window"
        rows.append(_compare(name, contenders, window, length, 1, AT_ONCE, rounds))
    for length in (8, 16) if options.quick else PROMPTS:
        name = f"gpt prompt of {length:,} tokens vs no window"
        rows.append(_compare(name, contenders, window, 0, length, 1, rounds))
    return rows


def _session(sizes, window):
    """Return an onnxruntime session of the step of a GPT of random weights."""
    from seqkeras.export.families.decoders import language_model_graphs
    from seqkeras.export.onnx_graphs import convert
    from seqkeras.models import GPT

    model = GPT(**sizes, feed_forward_dim=1024, max_length=2 * LENGTHS[-1], attention_window=window)
    model.build()
    step = language_model_graphs(model)["decoder_step"]
    graph = convert(step.function, step.inputs, step.outputs, "decoder_step")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        graph.whole().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _compare(name, sessions, window, past, length, times, rounds):
    """Return the row of the time for `length` tokens behind `past` ones."""
    contenders = {}
    for contender, session in sessions.items():
        inputs = _inputs(session, past if contender == "whole" else min(past, window), length)
        if contender == "ours":
            inputs["position"] = np.full((1, 1), past, "int32")

        def run(_, session=session, inputs=inputs):
            for _ in range(times):
                session.run(["logits"], inputs)

        contenders[contender] = run
    seconds = harness.times_in_turn(contenders, rounds, warm_up=1)
    return harness.compare_times(name, seconds["ours"], seconds["whole"], "ms", 1e3 / times)


def _inputs(session, past, length):
    """Return the inputs of a step of one beam whose cache holds `past` tokens."""
    inputs = {
        "token_ids": np.ones((1, 1, length), "int64"),
        "beam_index": np.zeros((1, 1), "int64"),
        "k": np.array(1),
    }
    shapes = {given.name: given.shape for given in session.get_inputs()}
    for name in shapes.keys() - inputs.keys() - {"position"}:  # keys and values
        _, heads, _, head_dim = shapes[name]
        inputs[name] = np.zeros((1, heads, past, head_dim), "float32")
    return inputs


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("window_steps", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=9, help=harness.ROUNDS_HELP.format(9)
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""Loading a BERT-base of safetensors, in time and in memory, against a plain read of the same file.

    python -m benchmarks.loading [--rounds N] [--json FILE] [--quick]

The file is made on the spot, 438 MB of random weights, and lies in the disk cache when it is read;
the limit of the machine is to read its bytes into memory, and to hold them once. Memory is measured
in a process of its own, by the most that is ever resident above what was before the load. Where
`transformers` is installed, its own load of the folder is reported too: it maps the file into
memory, and leaves reading it to the first use.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

TIME_GOAL, MEMORY_GOAL = 1 / 6, 1 / 1.75
QUICK = {
    "vocab_size": 101,
    "hidden_dim": 12,
    "num_layers": 2,
    "num_heads": 3,
    "feed_forward_dim": 48,
}
# A small load goes first: what the libraries allocate for themselves is not the model's.
MEMORY = """
import json, sys
from pathlib import Path
from seqkeras.pretrained import load_hugging_face

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

small, large = sys.argv[1:]
load_hugging_face(small)
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = resident("VmRSS")
model = load_hugging_face(large)
print(json.dumps(resident("VmHWM") - before))
"""


def measure(options):
    """Make the folder, check what is loaded, and time and weigh it; returns the rows."""
    import_tensorflow()
    import keras

    from seqkeras.models import Bert, presets
    from seqkeras.pretrained import load_hugging_face, save_hugging_face

    sizes = QUICK if options.quick else presets.BERT_BASE
    rounds = harness.rounds_of(options)
    with tempfile.TemporaryDirectory() as root:
        small, large = Path(root, "small"), Path(root, "large")
        for folder, arguments in ((small, QUICK), (large, sizes)):
            model = Bert(**arguments)
            model.build(None)
            save_hugging_face(model, folder)
        _check(model, load_hugging_face(large))
        path = large / "model.safetensors"
        size = path.stat().st_size
        contenders = {
            "ours": lambda _: load_hugging_face(large),
            "a plain read": lambda _: path.read_bytes(),
            **_rival(large),
        }
        times = harness.times_in_turn(contenders, rounds, warm_up=1)
        peak = _peak(small, large)
    backend = {"Keras backend": keras.backend.backend()}
    print(f"measured on {harness.machine(**backend)}; medians of {rounds} rounds")
    label = f"load {size / 1e6:.0f} MB vs"
    ours = times.pop("ours")
    return [
        *(
            harness.compare_times(
                f"{label} {rival}",
                ours,
                seconds,
                "ms",
                1000,
                TIME_GOAL if rival == "a plain read" else None,
            )
            for rival, seconds in times.items()
        ),
        harness.Row(
            f"{label} the file's size", peak / 1e6, size / 1e6, "MB", size / peak, MEMORY_GOAL
        ),
    ]


def _check(model, loaded):
    for one, other in zip(model.get_weights(), loaded.get_weights(), strict=True):
        if not np.array_equal(one, other):
            raise ValueError("what was loaded is not what was saved.")


def _rival(folder):
    try:
        transformers, _ = harness.import_rival("transformers"), harness.import_rival("torch")
    except ImportError as error:
        print(f"transformers: skipped; {error}")
        return {}
    transformers.utils.logging.disable_progress_bar()
    return {"transformers": lambda _: transformers.BertModel.from_pretrained(folder)}


def _peak(small, large):
    """Return the bytes that a load adds at most to a process."""
    return json.loads(harness.run_python("-c", MEMORY, small, large))


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("loading", __doc__.splitlines()[0])
    parser.add_argument("--rounds", type=harness.count, default=5, help="Timed rounds. Default: 5.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

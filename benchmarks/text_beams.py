"""Texts by beams: a translator's SavedModel on strings beside `serving` on the same bundle.

    python -m benchmarks.text_beams [--rounds N] [--json FILE] [--quick]

100 texts in, 100 texts out, four beams, two threads each. The weights are random, but drawn so that
a step is sure of its token, and the end of a text has a large logit at one place in some: answers
are of many lengths, hardly any is empty, and all must be the same on both sides. `serving` sorts
the texts and splits them by its token budget; the SavedModel has them as one batch. Time is that of
a clock, and of all processors together.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import generation_rivals, harness
from benchmarks.generation import FIRST_CHARACTER
from benchmarks.generation_rivals import END, THREADS
from benchmarks.training_steps import machine, quiet_tensorflow

SIZES = {"hidden_dim": 256, "num_layers": 3, "num_heads": 4, "feed_forward_dim": 1024}
QUICK = {"hidden_dim": 16, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 24}
VOCAB_SIZE, QUICK_VOCAB_SIZE = 4000, 100
TEXTS, QUICK_TEXTS = 100, 11
SOURCE, TARGET = 24, 40
NUM_BEAMS = 4
SURE, ENDS, END_BIAS = 4.0, 20.0, -18.0  # deviations of logits, of that of the end, and its mean
LEAST_LENGTHS, MOST_EMPTY = 4, 0.1  # of the answers
GOAL = 0.5
CLOCKS = {"time": time.perf_counter, "processors' time": time.process_time}


def measure(options):
    """Export, check and time; returns the rows."""
    quiet_tensorflow()
    if not options.quick:  # a smoke run may be where TensorFlow has computed something
        generation_rivals.limit_tensorflow()
    rounds = harness.rounds_of(options)
    with tempfile.TemporaryDirectory() as folder:
        texts = _export(Path(folder), options.quick)
        contenders = _contenders(Path(folder) / "bundle", texts)
        _check(*(answer(0) for answer in contenders.values()))
        rows = []
        for name, clock in CLOCKS.items():
            times = harness.times_in_turn(contenders, rounds, warm_up=1, clock=clock)
            label = f"transformer beam {NUM_BEAMS}, {len(texts)} texts, {name} vs serving"
            rows.append(
                harness.compare_times(label, times["ours"], times["serving"], "ms", 1000, GOAL)
            )
    print(f"measured on {machine()}, {THREADS} threads; {rounds} rounds")
    return rows


def _export(folder, quick):
    """Write a translator's bundle; returns the texts."""
    from seqkeras.export import save_run
    from seqkeras.export.bundle import export
    from seqkeras.models import Transformer
    from seqkeras.tokenizers import CharacterTable

    own = (QUICK_VOCAB_SIZE if quick else VOCAB_SIZE) - END - 1
    table = CharacterTable.learn([map(chr, range(FIRST_CHARACTER, FIRST_CHARACTER + own))])
    model = Transformer(
        len(table),
        len(table),
        max_length=TARGET,
        shared_embeddings="none",
        output_bias=True,
        **(QUICK if quick else SIZES),
    )
    _draw_weights(model)
    draw = np.random.default_rng(1)
    lengths = draw.integers(3, SOURCE, QUICK_TEXTS if quick else TEXTS, endpoint=True)
    texts = [table.decode(draw.integers(END + 1, len(table), length)) for length in lengths]
    save_run(
        folder / "run",
        model,
        "Translate",
        [{"text": text, "target": text} for text in texts],
        {"source_length": SOURCE, "target_length": TARGET},
        {"source": table, "target": table},
        decoding={"num_beams": NUM_BEAMS},
    )
    export(folder / "run", folder / "bundle")
    return texts


def _draw_weights(model):
    """Draw random weights; what normalises stays, so that a logit has the deviation of its row."""
    model.build()
    draw = np.random.default_rng(0)
    scale = model.block_options["hidden_dim"] ** -0.5
    for variable in model.variables:
        if "norm" not in variable.path:
            variable.assign(draw.normal(scale=scale, size=variable.shape))
    rows, bias = model.output_embedding.embeddings, model.output_bias
    deviations, means = np.full(bias.shape, SURE), np.zeros(bias.shape)
    deviations[END], means[END] = ENDS, END_BIAS
    rows.assign(rows.numpy() * deviations[:, None])
    bias.assign(means)


def _contenders(bundle, texts):
    """Return a dictionary: name -> function of the round's number, which answers the texts."""
    import tensorflow as tf

    from seqkeras import serving

    loaded = tf.saved_model.load(str(bundle / "saved_model_text" / "1"))
    function = loaded.signatures["serving_default"]
    translate = serving.load(bundle, threads=THREADS)

    def ours(_, loaded=loaded):
        return [text.decode() for text in function(text=tf.constant(texts))["text"].numpy()]

    return {"ours": ours, "serving": lambda _: [answer.text for answer in translate(texts)]}


def _check(found, expected):
    """Refuse other answers than `serving`'s, and such as are mostly empty or of few lengths."""
    same = np.mean([text == other for text, other in zip(found, expected, strict=True)])
    lengths = [len(text) for text in expected]
    told = f"they have {min(lengths)} to {max(lengths)} tokens"
    print(f"{same:.0%} of the answers are the same; {told}")
    if same < 1:
        raise ValueError(f"all answers must be those of serving; received {same:.0%}.")
    if lengths.count(0) > MOST_EMPTY * len(lengths) or len(set(lengths)) < LEAST_LENGTHS:
        raise ValueError(
            f"answers must have {LEAST_LENGTHS} lengths and {MOST_EMPTY:.0%} of 0 at most; "
            f"received {lengths}."
        )


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("text_beams", __doc__.splitlines()[0])
    parser.add_argument("--rounds", type=harness.count, default=9, help="Timed rounds. Default: 9.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""Generation in our runtime beside other ways to run the same weights: texts in, texts out.

    python -m benchmarks.generation [--only transformer] [--rivals ctranslate2,saved_model]
        [--precisions float32] [--optimum PYTHON] [--rounds N] [--json FILE] [--quick]

transformer: of base size, beside CTranslate2 at the same precision (its int8 is of all matrices,
ours is called int8-embedding), and in float32 beside `optimum` with onnxruntime, `transformers`
with PyTorch, our own generation in Keras and the samplers of keras_nlp. rnn: two layers of 512
LSTM units with attention, beside TensorFlow's SavedModel of it. What none of --rivals is for is
left out.

Random weights, the same on all sides; 24 tokens in and exactly 32 out, for nobody ever ends a text.
Answers are compared before they are timed: in float32 nine of ten must be the rival's own, which
near-ties among random logits can keep the last ones from. Ours gets its texts as `translate(texts)`
takes them, and splits 64 of them at beam 4, whose tokens are more than its budget; the rivals get
them as one batch. Two threads each. PYTHON is an interpreter with
benchmarks/requirements-optimum.txt, which needs an environment of its own; without it, this one.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import generation_rivals, harness, training_steps
from benchmarks.generation_rivals import END, SOURCE, TARGET, THREADS

SIZES = {
    "hidden_dim": 512,
    "num_layers": 6,
    "num_heads": 8,
    "feed_forward_dim": 2048,
}
QUICK = {"hidden_dim": 16, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 24}
RNN_SIZES = {"embedding_dim": 512, "units": 512, "decoder_units": 512}
RNN_QUICK = {"embedding_dim": 8, "units": 8, "decoder_units": 8}
VOCAB_SIZE, QUICK_VOCAB_SIZE = 32_000, 100
BATCH_SIZES, NUM_BEAMS = (1, 16, 64), (1, 4)
KERAS_BATCH_SIZES = (1, 16)  # the largest would take minutes, and they are reported only
SHORT = 64  # hypotheses of a batch that takes about a second, so that it is timed more often
SAME = 0.9  # of the answers in float32, at least
PRECISIONS = {"float32": "float32", "int8-embedding": "int8"}  # ours -> CTranslate2's
CTRANSLATE2_GOALS = {"float32": 1.3, "int8-embedding": 1.0}
TRANSFORMER_RIVALS = ("ctranslate2", "optimum", "transformers", "keras", "keras_nlp")
SAVED_MODEL = "saved_model"
RIVALS = (*TRANSFORMER_RIVALS, SAVED_MODEL)
FIRST_CHARACTER = 0x4E00  # a character for each token: Han, then Hangul


def measure(options):
    """Export, check and time; returns the rows."""
    training_steps.quiet_tensorflow()
    if not options.quick:  # a smoke run may be where TensorFlow has computed something
        generation_rivals.limit_tensorflow()
    rows = []
    for name, (family, rivals) in FAMILIES.items():
        if options.only in (None, name) and {*rivals} & {*options.rivals}:
            with tempfile.TemporaryDirectory() as folder:
                rows += family(Path(folder), options)
    if not rows:
        raise ValueError("none of --rivals is for what --only and --precisions leave.")
    machine, rounds = training_steps.machine(), harness.rounds_told(options)
    print(f"measured on {machine}, {THREADS} threads; {rounds}")
    return rows


def _measure_transformer(folder, options):
    model, table = make_model(options.quick)
    texts = make_texts(table)
    export_model(model, table, texts, options.precisions, folder)
    rows = []
    with contextlib.ExitStack() as stack:
        rivals = _rivals_in_float32(model, folder, options, stack)
        for precision in options.precisions:
            others = dict(rivals) if precision == "float32" else {}
            if "ctranslate2" in options.rivals:
                others["ctranslate2"] = generation_rivals.ctranslate2(
                    model, folder / "ctranslate2", PRECISIONS[precision]
                )
            rows += _compare_all("transformer", folder, precision, others, table, texts, options)
    return rows


def _rivals_in_float32(model, folder, options, stack):
    """Return a dictionary: name -> function, of those that the options name, but for
    CTranslate2."""
    rivals = {}
    if {"optimum", "transformers"} & {*options.rivals}:
        context = generation_rivals.hugging_face(model, folder / "transformers", options.optimum)
        rivals |= stack.enter_context(context)
    if "keras" in options.rivals:
        rivals["keras"] = generation_rivals.keras(model)
    if "keras_nlp" in options.rivals:
        rivals["keras_nlp"] = generation_rivals.keras_nlp(model)
    return {name: rival for name, rival in rivals.items() if name in options.rivals}


def _measure_rnn(folder, options):
    model, table = _make_rnn(options.quick)
    texts = make_texts(table)
    export_model(model, table, texts, (), folder, saved_models=True)
    rivals = {SAVED_MODEL: generation_rivals.saved_model(folder / "bundle" / "saved_model" / "1")}
    return _compare_all("rnn", folder, "float32", rivals, table, texts, options)


FAMILIES = {
    "transformer": (_measure_transformer, TRANSFORMER_RIVALS),
    "rnn": (_measure_rnn, (SAVED_MODEL,)),
}


def make_model(quick, max_length=TARGET, shared_embeddings="target"):
    """Return a built Transformer that never ends a text, and the table of its tokens."""
    from seqkeras.models import Transformer

    table = make_table(quick)
    model = Transformer(
        len(table),
        len(table),
        max_length=max_length,
        never_generated=(),
        output_bias=True,
        positions="marian",
        shared_embeddings=shared_embeddings,
        epsilon=1e-5,
        **(QUICK if quick else SIZES),
    )
    draw_weights(model)
    bias = np.zeros(len(table), np.float32)
    bias[: END + 1] = -1e4  # nobody ever ends a text
    model.output_bias.assign(bias)
    return model, table


def _make_rnn(quick):
    from seqkeras.models import RNNSeq2Seq

    table = make_table(quick)
    model = RNNSeq2Seq.bahdanau(
        len(table),
        len(table),
        cell="lstm",
        encoder_layers=2,
        decoder_layers=2,
        never_generated=range(END),
        **(RNN_QUICK if quick else RNN_SIZES),
    )
    draw_weights(model)
    [bias] = [variable for variable in model.variables if variable.shape == (len(table),)]
    bias.assign(np.where(np.arange(len(table)) == END, np.float32(-1e4), bias))  # no text ever ends
    return model, table


def make_table(quick, vocab_size=VOCAB_SIZE):
    """Return a table of characters of so many tokens."""
    from seqkeras.tokenizers import CharacterTable

    places = [*range(FIRST_CHARACTER, 0xA000), *range(0xAC00, 0xD7A4)]
    own = (QUICK_VOCAB_SIZE if quick else vocab_size) - END - 1
    return CharacterTable.learn([map(chr, places[:own])])


def draw_weights(model):
    """Build a model with random weights."""
    model.build()
    draw = np.random.default_rng(0)
    for variable in model.variables:
        if "norm" not in variable.path:
            variable.assign(draw.normal(scale=0.02, size=variable.shape))


def make_texts(table):
    """Return as many texts as the largest batch has, of `SOURCE` tokens each."""
    draw = np.random.default_rng(1)
    ids = draw.integers(END + 1, len(table), (max(BATCH_SIZES), SOURCE))
    return [table.decode(row) for row in ids]


def export_model(model, table, texts, precisions, folder, saved_models=False):
    """Write the model's bundle, `folder`/bundle, in float32 and other precisions."""
    from seqkeras.export import save_run
    from seqkeras.export.bundle import ExportOptions, export
    from seqkeras.export.tolerances import UNLIMITED

    save_run(
        folder / "run",
        model,
        "Translate",
        [{"text": text, "target": text} for text in texts[:2]],
        {"source_length": SOURCE, "target_length": TARGET},
        {"source": table, "target": table},
        decoding={"num_beams": max(NUM_BEAMS)},
    )
    others = tuple(name for name in precisions if name != "float32")
    options = ExportOptions(precisions=others, tolerances=UNLIMITED, saved_models=saved_models)
    export(folder / "run", folder / "bundle", options=options)


def _compare_all(family, folder, precision, rivals, table, texts, options):
    from seqkeras import serving

    ours = serving.load(folder / "bundle", precision=precision, threads=THREADS)
    rows = []
    for num_beams in NUM_BEAMS:
        for batch_size in BATCH_SIZES[: 1 if options.quick else None]:
            others = {
                name: rival
                for name, rival in rivals.items()
                if batch_size in KERAS_BATCH_SIZES or not name.startswith("keras")
            }
            if others:
                label = f"{family} {precision} beam {num_beams} b{batch_size}"
                given = texts[:batch_size]
                rows += _compare(label, ours, others, table, given, num_beams, options)
    return rows


def _compare(label, ours, rivals, table, texts, num_beams, options):
    token_ids = [list(map(int, table.encode(text))) for text in texts]
    contenders = {"ours": lambda _: [answer.text for answer in ours(texts, num_beams=num_beams)]}
    for name, rival in rivals.items():
        contenders[name] = lambda _, rival=rival: rival(token_ids, num_beams)
    found = [list(map(int, table.encode(text))) for text in contenders["ours"](0)]
    for name in rivals:
        _check(label, name, found, contenders[name](0))
    short = len(texts) * num_beams <= SHORT
    times = harness.times_in_turn(contenders, harness.rounds_of(options, short), warm_up=1)
    return [
        harness.compare_times(
            f"{label} vs {name}",
            times["ours"],
            times[name],
            "ms/token",
            1000 / (len(texts) * TARGET),
            _goal(name, label, len(texts)),
        )
        for name in rivals
    ]


def _check(label, name, found, expected):
    """Print how many answers are the rival's own; in float32 `SAME` of them must be."""
    if {len(row) for row in [*found, *expected]} != {TARGET}:
        raise ValueError(f"{label}: not every answer has {TARGET} tokens.")
    same = np.mean([row == other for row, other in zip(found, expected, strict=True)])
    if " float32 " in label and same < SAME:
        raise ValueError(
            f"{label}: {SAME:.0%} of the answers must be those of {name}; received {same:.0%}."
        )
    print(f"{label}: {same:.0%} of the answers are those of {name}", flush=True)


def _goal(name, label, batch_size):
    if name == "ctranslate2":
        return CTRANSLATE2_GOALS[label.split()[1]]
    goals = {"optimum": 1.5 if batch_size == 1 else 1.15, "transformers": 2.0, SAVED_MODEL: 5.0}
    return goals.get(name)


def _names_of(known):
    """Return a list of some of these names, for the command line."""

    def names(text):
        found = tuple(text.split(","))
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(
                f"expected some of {','.join(known)}; received {unknown[0]!r}"
            )
        return found

    return names


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("generation", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=3, help=harness.ROUNDS_HELP.format(3)
    )
    parser.add_argument("--only", choices=FAMILIES, help="Family of models to measure alone.")
    parser.add_argument(
        "--rivals",
        type=_names_of(RIVALS),
        default=RIVALS,
        metavar="NAME,…",
        help=f"Rivals: {','.join(TRANSFORMER_RIVALS)}; {SAVED_MODEL} (rnn). Default: all.",
    )
    parser.add_argument(
        "--precisions",
        type=_names_of(PRECISIONS),
        default=tuple(PRECISIONS),
        metavar="NAME,…",
        help=f"Precisions of the transformer: {','.join(PRECISIONS)}. Default: all.",
    )
    parser.add_argument(
        "--optimum", metavar="PYTHON", default=sys.executable, help="Interpreter of optimum."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""Generation with a Transformer of base size: our runtime beside CTranslate2, text in to text out.

    python -m benchmarks.generation [--rounds N] [--precisions float32,int8] [--json FILE] [--quick]

Random weights, the same on both sides; 24 tokens in and exactly 32 out, for neither side ever ends
a text. Float32 answers are compared before they are timed. Two threads each.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import ctranslate2_model, harness, training_steps

SIZES = {
    "hidden_dim": 512,
    "num_layers": 6,
    "num_heads": 8,
    "feed_forward_dim": 2048,
}
QUICK = {"hidden_dim": 16, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 24}
VOCAB_SIZE, QUICK_VOCAB_SIZE = 32_000, 100
SOURCE, TARGET = 24, 32
BATCH_SIZES, BEAM_SIZES = (1, 16, 64), (1, 4)
GOALS = {"float32": 1.3, "int8": 1.0}
THREADS = 2
FIRST_CHARACTER = 0x4E00  # a character for each token: Han, then Hangul


def measure(options):
    """Export, check and time both; returns the rows."""
    training_steps.quiet_tensorflow()
    import serving

    ctranslate2 = harness.import_rival("ctranslate2")
    rounds = 1 if options.quick else options.rounds
    model, table = _model(options.quick)
    texts = _texts(table)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        _export(model, table, texts, options.precisions, folder)
        ctranslate2_model.write(model, folder / "ctranslate2")
        for precision in options.precisions:
            ours = serving.load(folder / "bundle", precision=precision, threads=THREADS)
            rival = ctranslate2.Translator(
                str(folder / "ctranslate2"), compute_type=precision, intra_threads=THREADS
            )
            for beam_size in BEAM_SIZES:
                for batch_size in BATCH_SIZES[: 1 if options.quick else None]:
                    case = precision, beam_size, texts[:batch_size], rounds
                    rows.append(_compare(ours, rival, table, *case))
            del ours, rival
    versions = {"ctranslate2": ctranslate2.__version__}
    print(f"measured on {harness.machine(**versions)}, {THREADS} threads; {rounds} rounds")
    return rows


def _model(quick):
    from seqkeras.models import Transformer
    from seqkeras.tokenizers import CharacterTable

    vocab_size = QUICK_VOCAB_SIZE if quick else VOCAB_SIZE
    places = [*range(FIRST_CHARACTER, 0xA000), *range(0xAC00, 0xD7A4)]
    table = CharacterTable.learn([map(chr, places[: vocab_size - 4])])
    model = Transformer(
        vocab_size,
        vocab_size,
        max_length=TARGET,
        never_generated=(),
        output_bias=True,
        **(QUICK if quick else SIZES),
    )
    model.build()
    draw = np.random.default_rng(0)
    for variable in model.variables:
        if "norm" not in variable.path:
            variable.assign(draw.normal(scale=0.02, size=variable.shape))
    bias = np.zeros(vocab_size, np.float32)
    bias[:4] = -1e4  # neither side ever ends a text
    model.output_bias.assign(bias)
    return model, table


def _texts(table):
    draw = np.random.default_rng(1)
    ids = draw.integers(4, len(table), (max(BATCH_SIZES), SOURCE))
    return [table.decode(row) for row in ids]


def _export(model, table, texts, precisions, folder):
    from export.bundle import Options, export
    from seqkeras.runs import save_run

    save_run(
        folder / "run",
        model,
        "Translate",
        [{"text": text, "target": text} for text in texts[:2]],
        {"source_length": SOURCE, "target_length": TARGET},
        {"source": table, "target": table},
    )
    others = tuple(name for name in precisions if name != "float32")
    options = Options(precisions=others, tolerance=1.0, saved_models=False)
    export(folder / "run", folder / "bundle", options=options)


def _compare(ours, rival, table, precision, beam_size, texts, rounds):
    tokens = [list(map(str, table.encode(text))) for text in texts]

    def answer(_):
        answers = ours(texts, beam_size=beam_size, token_budget=10**9)
        return [each.text for each in answers]

    def answer_of_rival(_):
        results = rival.translate_batch(
            tokens,
            beam_size=beam_size,
            max_decoding_length=TARGET,
            min_decoding_length=TARGET,
            length_penalty=0,
        )
        return [table.decode(map(int, each.hypotheses[0])) for each in results]

    label = f"transformer {precision} beam {beam_size} b{len(texts)}"
    found, expected = answer(0), answer_of_rival(0)
    if {len(text) for text in found + expected} != {TARGET}:
        raise ValueError(f"{label}: not every answer has {TARGET} tokens.")
    same = np.mean([text == other for text, other in zip(found, expected, strict=True)])
    if precision == "float32" and not same:
        raise ValueError(f"{label}: no answer is the same as CTranslate2's.")
    print(f"{label}: {same:.0%} of the answers are CTranslate2's", flush=True)
    times = harness.times_in_turn({"ours": answer, "rival": answer_of_rival}, rounds, warm_up=1)
    total = len(texts) * TARGET
    return harness.compare_times(
        f"{label} vs ctranslate2",
        times["ours"],
        times["rival"],
        "ms/token",
        1000 / total,
        GOALS.get(precision),
    )


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("generation", __doc__.splitlines()[0])
    parser.add_argument("--rounds", type=harness.count, default=5, help="timed rounds; 5")
    parser.add_argument(
        "--precisions",
        type=lambda text: tuple(text.split(",")),
        default=("float32", "int8"),
        metavar="NAME,…",
        help="float32,int8",
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""What denoising-pretraining gives to translation and to summaries of few examples, over seeds.

    python -m benchmarks.denoising FILE [--noise spans] [--pairs 2000] [--seeds 3] [--folder FOLDER]
    python -m benchmarks.denoising events [--noise infilling] [--pairs 300] ...

FILE is a file of pairs, as Tatoeba's: 500 of its sources are held out, each with all of its
targets, and those are scored of which no target has another source; a model is pre-trained on the
texts of both sides of all other pairs, and tuned on a few of them. Of `events`
(`benchmarks.event_reports`) a model is pre-trained on 4,000 reports without summaries, and tuned on
a few with theirs.

    ours    tuned from the pre-trained model
    rivals  the same command from random weights, with the same tokens (random weights), and with
            tokens that are learned from the few pairs (from scratch)

All have the same sizes, steps and options, and the model of the last step is scored on what was
held out: BLEU; of events also the share of summaries that are right to the last character. A seed
draws order and dropout of the tuning, and the weights of what is from scratch; the pre-trained
model and the random weights are one for all seeds.
"""

import random
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import harness
from benchmarks.event_reports import reports
from seqkeras import files
from seqkeras.data.parallel import read_tab_separated

EVENTS = "events"
SIZES = {"num_layers": 2, "hidden_dim": 96, "feed_forward_dim": 192, "num_heads": 4}
SIZES |= {"dropout": 0.1, "attention_dropout": 0, "pre_norm": "true"}
HELD_OUT, REPORTS = 500, 4000
QUICK_STEPS = 2


def measure(options):
    """Pre-train, tune and score; returns the rows."""
    if options.quick:
        options.seeds = 1
    with tempfile.TemporaryDirectory() as folder:
        return _compare(Path(options.folder or folder), options)


def _compare(folder, options):
    folder.mkdir(parents=True, exist_ok=True)
    length, batch_size = _write(folder, options)
    common = {"max_length": length, "batch_size": batch_size, "learning_rate": 2e-3}
    common |= {"looks": 1, "keep": "last", "tensorboard": "false"}
    runs = _pretrained(folder, options, common)
    scores = {name: [] for name in (*runs, "from scratch")}
    for seed in range(options.seeds):
        for name, found in scores.items():
            found.append(_tuned(folder, options, common | {"seed": seed}, runs.get(name)))
        print(f"seed {seed}: " + ", ".join(f"{name} {of[-1]}" for name, of in scores.items()))
    return [
        _row(name, scores["ours"], found, score)
        for name, found in scores.items()
        if name != "ours"
        for score in found[0]
    ]


def _pretrained(folder, options, common):
    """Return the runs of the pre-trained model, and of random weights with its tokens."""
    given = common | SIZES | {"vocab_size": options.vocab_size, "noise": options.noise}
    steps = QUICK_STEPS if options.quick else options.pretraining_steps
    still = {"max_steps": 1, "learning_rate": 1e-9, "warmup_steps": 0}
    runs = {"ours": folder / f"restorer-{options.noise}", "random weights": folder / "random"}
    for run, changes in zip(runs.values(), ({"max_steps": steps}, still), strict=True):
        _train("denoising-pretraining", folder / "texts.txt", given | changes, run)
    restored = files.read_json(runs["ours"] / "scores.json")
    print(f"pre-trained: {restored['validation_accuracy']:.2%} of tokens are right")
    return runs


def _tuned(folder, options, common, start):
    """Return the scores of a translation that begins with a run; None: from scratch."""
    given = common | {"validation": folder / "held-out.tsv", "several_targets": "true"}
    given |= {"num_beams": 1, "max_steps": QUICK_STEPS if options.quick else options.steps}
    if start is None:
        given |= SIZES | {"vocab_size": options.vocab_size, "joint": "true"}
    else:
        given["start_from"] = start
    run = folder / f"{'scratch' if start is None else start.name}-{common['seed']}"
    _train("translation", folder / "pairs.tsv", given, run)
    return _scores(run, folder / "held-out.tsv", options.data == EVENTS)


def _row(name, ours, rival, score):
    own, other = (statistics.mean(found[score] for found in each) for each in (ours, rival))
    return harness.Row(f"{score} vs {name}", own, other, score, own / max(other, 1e-9))


def _train(task, file, given, run):
    if not (run / "scores.json").exists():
        command = ["-m", "training", task, file, *harness.as_options(given), "--out", run]
        harness.run_python(*command)


def _scores(run, held_out, exact):
    """Return BLEU of the held-out pairs, and the share of exact answers."""
    scores = {"BLEU": round(files.read_json(run / "scores.json")["bleu"], 2)}
    if exact:
        out = run / "words.json"
        command = ["-m", "training", "evaluate", run, "--data", held_out, "--metrics", "words"]
        harness.run_python(*command, "--out", out)
        scores["exact %"] = round(100 - files.read_json(out)["sentence_error_rate"], 2)
    return scores


def _write(folder, options):
    """Write the texts, the few pairs and what is held out; returns the most tokens of a text, and
    how many make a batch."""
    if options.data == EVENTS:
        few, held_out = (reports(options.pairs, 1), reports(HELD_OUT, 2))
        documents = [sentences for sentences, _ in reports(REPORTS, 0)]
        few, held_out = (
            [(" ".join(sentences), summary) for sentences, summary in part]
            for part in (few, held_out)
        )
    else:
        few, held_out, documents = _of_pairs(Path(options.data), options.pairs)
    texts = "\n\n".join("\n".join(sentences) for sentences in documents)
    (folder / "texts.txt").write_text(texts + "\n", encoding="utf-8")
    for name, pairs in (("pairs", few), ("held-out", held_out)):
        lines = "".join("\t".join(pair) + "\n" for pair in pairs)
        (folder / f"{name}.tsv").write_text(lines, encoding="utf-8")
    return (128, 32) if options.data == EVENTS else (48, 64)


def _of_pairs(path, count):
    """Return the few pairs, the held-out ones, none of whose targets stands among the others, and
    all texts of these, a document each."""
    pairs = [tuple(pair) for _, pair in read_tab_separated(path, "")]
    draw, sources = random.Random(0), [*dict.fromkeys(source for source, _ in pairs)]
    chosen = {*draw.sample(sources, min(HELD_OUT, len(sources) // 2))}
    others = [pair for pair in pairs if pair[0] not in chosen]
    texts = [*dict.fromkeys(text for pair in others for text in pair)]
    draw.shuffle(texts)
    known = {*texts}
    chosen -= {source for source, target in pairs if source in chosen and target in known}
    held_out = [pair for pair in pairs if pair[0] in chosen]
    return draw.sample(others, min(count, len(others))), held_out, [[text] for text in texts]


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("denoising", __doc__.splitlines()[0])
    parser.add_argument("data", help=f"File of pairs; or {EVENTS}, made reports and summaries.")
    parser.add_argument("--noise", default="spans", help="Noise of the pre-training.")
    parser.add_argument("--pairs", type=harness.count, default=2000, help="Pairs of the tuning.")
    parser.add_argument("--seeds", type=harness.count, default=3, help="Seeds of the tuning.")
    parser.add_argument("--steps", type=harness.count, default=800, help="Steps of the tuning.")
    parser.add_argument(
        "--pretraining-steps", type=harness.count, default=2500, help="Steps of the pre-training."
    )
    parser.add_argument("--vocab-size", type=harness.count, default=2000, help="Tokens to learn.")
    parser.add_argument("--folder", type=Path, help="Folder that keeps texts and runs.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""A list of texts in one call of Python, whose inputs begin as others end, and batch after batch.

    python -m benchmarks.generate_list [--models FOLDER] [--before CHECKOUT] [--only gpt]
        [--rounds N] [--json FILE] [--quick]

gpt: 64 prompts of 8 to 128 tokens, each with a sample of up to 250 tokens, which ends at one of 80
characters. transformer: 192 texts of 8 to 128 tokens; the model ends an answer after 1 to 256
tokens. The models are those of `benchmarks.generate_load`; FOLDER keeps them.

before: the same call in an earlier checkout, in this process. in batches: a call for each batch
that fits in the token budget, the shortest texts first. One thread; processor time. Nine of ten
answers must be the same: a sample may differ where a sum of probabilities is almost the number that
was drawn.
"""

import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import generation, harness
from benchmarks.generate_load import END, FAMILIES, SAME, requests_of, write_models

BUDGET = 4096  # tokens, the default of both pipelines
SHORTEST = 16  # tokens that a text counts at least
COUNTS, QUICK_COUNT = {"gpt": 64, "transformer": 192}, 7
NEW, QUICK_NEW = 250, 11
STOPS, QUICK_STOPS = 80, 1
TEMPERATURE = 5.0


def measure(options):
    """Make the models and answer the lists in turn; returns the rows."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, family in FAMILIES.items():
            if options.only in (None, name):
                suffix = "-quick" if options.quick else ""
                folder = (options.models or Path(temporary)) / f"{name}{suffix}"
                write_models(family, folder, False, options.quick)
                rows += _measure(name, family, folder / "bundle", options)
    machine = harness.machine(onnxruntime=onnxruntime.__version__)
    print(f"measured on {machine}, one thread, processor time; {harness.rounds_of(options)} rounds")
    return rows


def _measure(name, family, bundle, options):
    """Return the rows of a model."""
    from seqkeras import serving

    pipeline = serving.load(bundle, threads=1)
    count = QUICK_COUNT if options.quick else COUNTS[name]
    texts = [request.text for request in requests_of(family, options.quick)[:count]]
    asked = {} if family.translates else _sampled(family, options.quick)
    answers = {}
    contenders = {"ours": lambda: pipeline(texts, **asked)}
    if options.before:
        earlier = _package(options.before).load(bundle, threads=1)
        contenders["before"] = lambda: earlier(texts, **asked)
    contenders["in batches"] = lambda: _in_batches(pipeline, texts, asked)

    def answer(contender):
        answers[contender] = [each.text for each in contenders[contender]()]

    times = harness.times_in_turn(
        {contender: lambda _, each=contender: answer(each) for contender in contenders},
        harness.rounds_of(options),
        warm_up=0,
        clock=time.process_time,
    )
    lengths = [*map(len, answers["ours"])]
    print(f"{name}: answers of {min(lengths)} to {max(lengths)} tokens", flush=True)
    for contender, found in answers.items():
        same = np.mean([text == other for text, other in zip(answers["ours"], found)])
        if same < SAME:
            raise ValueError(f"{name}: {SAME:.0%} must be equal {contender}; received {same:.0%}.")
        if contender != "ours":
            case = f"{name} {count} texts vs {contender}"
            yield harness.compare_times(case, times["ours"], times[contender], "s", 1)


def _sampled(family, quick):
    """Return options that let answers end after different numbers of tokens."""
    table = generation.make_table(quick, family.vocab_size)
    stops = QUICK_STOPS if quick else STOPS
    return {
        "sample": True,
        "seed": 1,
        "temperature": TEMPERATURE,
        "max_new_tokens": QUICK_NEW if quick else NEW,
        "stop": [table.decode([END + 1 + number]) for number in range(stops)],
    }


def _package(checkout):
    """Return the package `serving` of a checkout, by a name of its own."""
    folder = checkout.resolve() / "serving"
    spec = importlib.util.spec_from_file_location(
        "serving_before", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


def _in_batches(pipeline, texts, asked):
    """Return the answers by a call for each batch that fits in the budget."""
    answers, batch = [None] * len(texts), []
    places = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for place in [*places, None]:
        work = (
            0
            if place is None
            else max(len(texts[place]), SHORTEST) + asked.get("max_new_tokens", 0)
        )
        if batch and (place is None or (len(batch) + 1) * work > BUDGET):
            found = pipeline([texts[index] for index in batch], **asked)
            for index, answer in zip(batch, found, strict=True):
                answers[index] = answer
            batch = []
        batch.append(place)
    return answers


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("generate_list", __doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="Folder to keep the models.")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="An earlier checkout.")
    parser.add_argument("--only", choices=FAMILIES, help="Model to measure alone.")
    parser.add_argument(
        "--rounds", type=harness.count, default=3, help=harness.ROUNDS_HELP.format(3)
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

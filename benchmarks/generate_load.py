"""Generation for many clients: our server, an earlier one of ours, and CTranslate2, in turn.

    python -m benchmarks.generate_load [--models FOLDER] [--before CHECKOUT] [--only gpt]
        [--clients N] [--seconds S] [--rounds N] [--json FILE] [--quick]

gpt: 6 layers of 512, 8,000 tokens; each request says how many tokens it wants, 8 to 256.
transformer: of base size, 32,000 tokens; it ends a text itself, after 1 to 256 tokens. The
other weights are random; prompts of 8 to 128 tokens; all greedy. Each of the clients asks again as
soon as it is answered.

before: `python -m serving serve` of an earlier checkout on the same bundle, which answers batches
that run to their end. ctranslate2: its asynchronous API in this process, two workers of one thread,
each of which gets what waits, up to half of the clients, as a batch; a text has its own limit. Some
of our answers must be those of a pipeline that is asked alone.

The first token of a stream is measured in steps, the median time between two pieces of the same
clients. A light request (32 tokens, greedy) is asked alone and beside a client that asks for 64
answers of 500 tokens by 64 beams. Two threads each. FOLDER keeps the models for a later run.
"""

import contextlib
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import ctranslate2_model, generation, harness
from benchmarks.generate_clients import PATIENCE, Batches, Request, Server, put_load
from benchmarks.generation_rivals import BEGIN, END, THREADS
from benchmarks.server import running

GPT_VOCAB_SIZE = 8000
PROMPTS, ANSWERS = (8, 128), (8, 256)
QUICK_PROMPTS, QUICK_ANSWERS = (5, 13), (3, 11)
ROOM = 640  # tokens of a prompt and what follows
SOURCES = 64  # whose first steps are compared
NEVER = -100.0  # bias of what is never generated
CHECKED, SAME = 10, 0.9  # answers that are compared, and how many of them must be the same
LIGHT, QUICK_LIGHT = {"max_new_tokens": 32}, {"max_new_tokens": 5}
HEAVY = {"max_new_tokens": 500, "num_beams": 64, "n_best": 64}
QUICK_HEAVY = {"max_new_tokens": 19, "num_beams": 3, "n_best": 3}
LIGHTS, BEGUN = 5, 2.0  # light requests of a round, and seconds that the heavy one has been there
GOALS = {"before": 1.6, "ctranslate2": 1.0}
MOST_STEPS, MOST_TIMES = 3, 3  # to the first token, and of a light request's time alone


@dataclasses.dataclass(frozen=True)
class Family:
    """A model, and how it is asked.

    Attributes:
        make: takes `quick`, returns the model and its table.
        vocab_size: of both.
        pipeline: its name.
        limits: of its bundle.
        write: writes it for CTranslate2.
        options: takes the tokens of an answer, returns the options of a request.
        weighs: whether a light request is asked beside a heavy one.
    """

    make: Callable
    vocab_size: int
    pipeline: str
    limits: dict
    write: Callable
    options: Callable
    weighs: bool = False

    @property
    def translates(self):
        """Whether a text is translated, not continued."""
        return self.pipeline == "Translate"


def _make_gpt(quick):
    from seqkeras.models import GPT

    table = generation.make_table(quick, GPT_VOCAB_SIZE)
    model = GPT(len(table), **(generation.QUICK if quick else generation.SIZES), max_length=ROOM)
    generation.draw_weights(model)
    [rows] = model.embedding.weights
    rows.assign(np.where(np.arange(len(table))[:, None] > END, rows, 0.0))  # no text ever ends
    return model, table


def _make_transformer(quick):
    """Return a Transformer that counts: behind a token comes the next, from one that the source
    chooses to the last, which ends the text.

    The state of a step is mostly the vector of its token, so the token with that vector at the
    output wins. A bias takes away what all sources have in common in the first step.
    """
    model, table = generation.make_model(quick, ANSWERS[1], "none")
    counted = END + 1 + np.arange(QUICK_ANSWERS[1] if quick else ANSWERS[1])
    [rows], [vectors] = model.output_embedding.weights, model.target_embedding.weights
    values = np.asarray(rows).copy()
    values[[*counted[1:], END]] = np.asarray(vectors)[counted]
    rows.assign(values)
    model.output_bias.assign(np.zeros(len(table), np.float32))
    sources = np.random.default_rng(2).integers(END + 1, len(table), (SOURCES, PROMPTS[0]))
    state = model.encode(sources, np.full(SOURCES, PROMPTS[0]))
    (logits, *_), _ = model.step(np.full((SOURCES, 1), BEGIN), state)
    bias = np.full(len(table), NEVER, np.float32)
    allowed = [*counted, END]
    bias[allowed] = -np.asarray(logits)[:, 0, allowed].mean(axis=0)
    model.output_bias.assign(bias)
    return model, table


FAMILIES = {
    "gpt": Family(
        _make_gpt,
        GPT_VOCAB_SIZE,
        "Generate",
        {"source_length": PROMPTS[1], "target_length": ROOM},
        ctranslate2_model.write_gpt,
        lambda tokens: {"max_new_tokens": tokens},
        weighs=True,
    ),
    "transformer": Family(
        _make_transformer,
        generation.VOCAB_SIZE,
        "Translate",
        {"source_length": PROMPTS[1], "target_length": ANSWERS[1]},
        ctranslate2_model.write,
        lambda tokens: {},
    ),
}


def measure(options):
    """Make the models and put load on all in turn; returns the rows."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, family in FAMILIES.items():
            if options.only in (None, name):
                folder = (options.models or Path(temporary)) / (
                    f"{name}-quick" if options.quick else name
                )
                rows += _measure(name, family, folder, options)
    versions = {"onnxruntime": onnxruntime.__version__}
    with contextlib.suppress(ImportError):
        versions["CTranslate2"] = harness.import_rival("ctranslate2").__version__
    print(
        f"measured on {harness.machine(**versions)}, {THREADS} threads; "
        f"{harness.rounds_of(options)} rounds; load average {os.getloadavg()[1]:.1f}"
    )
    return rows


def _measure(name, family, folder, options):
    requests = requests_of(family, options.quick)
    contenders = _contenders(family, folder, requests[0], options)
    clients, seconds = (3, 0.5) if options.quick else (options.clients, options.seconds)
    rates = {contender: [] for contender in contenders}
    lights = {contender: [] for contender in contenders}
    firsts, loads = [], {}
    for number in range(harness.rounds_of(options)):
        for contender, begun in contenders.items():
            with begun() as asked:
                load = put_load(asked.ask, requests, clients, seconds)
                rates[contender].append(load.tokens_per_second)
                told = (
                    f"{name} round {number + 1}, {contender}: {rates[contender][-1]:.0f} tokens/s"
                )
                print(f"{told}, load average {os.getloadavg()[0]:.1f}", flush=True)
                loads[contender] = load
                if contender == "ours":
                    streams = put_load(asked.stream, requests, clients, seconds)
                    firsts.append(streams.first_token)
                if family.weighs and contender != "ctranslate2":
                    lights[contender].append(_light_times(asked, requests, options.quick))
    _check(name, folder, loads)
    label = f"{name} c{clients}"
    return [
        *_rate_rows(label, rates),
        _first_row(label, firsts),
        *(_light_rows(name, lights) if family.weighs else ()),
    ]


def requests_of(family, quick):
    """Return requests of many lengths."""
    draw = np.random.default_rng(1)
    table = generation.make_table(quick, family.vocab_size)
    characters = [table.decode([token_id]) for token_id in range(END + 1, len(table))]
    prompts, answers = (QUICK_PROMPTS, QUICK_ANSWERS) if quick else (PROMPTS, ANSWERS)
    return [
        Request(
            "".join(draw.choice(characters, draw.integers(*prompts, endpoint=True))),
            family.options(int(draw.integers(*answers, endpoint=True))),
        )
        for _ in range(1000)
    ]


def _contenders(family, folder, first, options):
    """Return name -> function that returns the context of whom clients ask."""
    bundle = folder / "bundle"
    contenders = {"ours": lambda: _server(bundle, harness.CHECKOUT, first)}
    if options.before:
        contenders["before"] = lambda: _server(bundle, options.before.resolve(), first)
    has_rival = False
    try:
        harness.import_rival("ctranslate2")
    except ImportError as error:
        print(f"ctranslate2: left out; {error}")
    else:
        has_rival = True
        contenders["ctranslate2"] = lambda: _ctranslate2(family, folder, options)
    write_models(family, folder, has_rival, options.quick)
    return contenders


def write_models(family, folder, has_rival, quick):
    """Write what is not in the folder yet."""
    written, rival = folder / "bundle", folder / "ctranslate2"
    if written.exists() and (rival.exists() or not has_rival):
        return
    from benchmarks.training_steps import quiet_tensorflow
    from seqkeras.export import save_run
    from seqkeras.export.bundle import ExportOptions, export

    quiet_tensorflow()
    model, table = family.make(quick)
    if has_rival and not rival.exists():
        family.write(model, rival)
    if not written.exists():
        texts = [request.text for request in requests_of(family, quick)[:2]]
        save_run(
            folder / "run",
            model,
            family.pipeline,
            [
                {"text": text, "target": text} if family.translates else {"input": text}
                for text in texts
            ],
            family.limits,
            {"source": table, "target": table} if family.translates else {"text": table},
            decoding={"num_beams": 1},
            overwrite=True,
        )
        export(folder / "run", written, options=ExportOptions(saved_models=False))


@contextlib.contextmanager
def _server(bundle, checkout, request):
    """Yield the `Server` of a checkout, which answers a first request."""
    [port] = harness.free_ports(1)
    command = [sys.executable, "-m", "serving", "serve", f"bundle={bundle.resolve()}"]
    command += ["--port", port, "--threads", THREADS, "--timeout", PATIENCE, "--no-log"]
    server = Server(port)
    with running(command, server.url, server.body(request), checkout), contextlib.closing(server):
        yield server


@contextlib.contextmanager
def _ctranslate2(family, folder, options):
    """Yield the asynchronous API of CTranslate2, which gets what waits as batches."""
    from seqkeras import serving

    package = harness.import_rival("ctranslate2")
    kind = package.Translator if family.translates else package.Generator
    model = kind(
        str(folder / "ctranslate2"),
        compute_type="float32",
        inter_threads=THREADS,
        intra_threads=1,
        max_queued_batches=-1,
    )
    pipeline = serving.load(folder / "bundle")
    table = generation.make_table(options.quick, family.vocab_size)
    answer = _translated if family.translates else _continued

    def texts(requests):
        rows = [pipeline.encode(request.text) for request in requests]
        ids = [list(map(str, getattr(row, "token_ids", row))) for row in rows]
        return [table.decode(map(int, found)) for found in answer(model, ids, requests)]

    batches = Batches(texts, max(options.clients // THREADS, 1), THREADS)
    try:
        yield batches
    finally:
        batches.close()


def _translated(model, token_ids, requests):
    results = model.translate_batch(
        token_ids, asynchronous=True, beam_size=1, max_decoding_length=ANSWERS[1]
    )
    return [result.result().hypotheses[0] for result in results]


def _continued(model, token_ids, requests):
    limits = [request.options["max_new_tokens"] for request in requests]
    left = limits.copy()

    def is_complete(step):
        left[step.batch_id] -= 1
        return left[step.batch_id] <= 0

    results = model.generate_batch(
        token_ids,
        asynchronous=True,
        include_prompt_in_result=False,
        max_length=max(limits),
        callback=is_complete,
    )
    found = [result.result().sequences_ids[0] for result in results]
    return [row[:limit] for row, limit in zip(found, limits, strict=True)]


def _light_times(server, requests, quick):
    """Return the times of a light request in seconds, alone and beside a heavy one."""
    options, heavy = (QUICK_LIGHT, QUICK_HEAVY) if quick else (LIGHT, HEAVY)
    light = [Request(request.text, options) for request in requests[: 1 if quick else LIGHTS]]
    alone = [server.ask(request).seconds for request in light]
    with server.busy_with(Request(requests[0].text, heavy)):
        time.sleep(0.1 if quick else BEGUN)
        beside = [server.ask(request).seconds for request in light]
    return statistics.median(alone), statistics.median(beside)


def _check(name, folder, loads):
    """Refuse a server whose answers are not those of a pipeline that is asked alone; print how many
    of the others are."""
    from seqkeras import serving

    pipeline = serving.load(folder / "bundle", threads=THREADS)
    asked = [answer.request for answer in loads["ours"].answers[:CHECKED]]
    expected = [pipeline(request.text, **request.options).text for request in asked]
    for contender, load in loads.items():
        found = [answer.text for answer in load.answers[:CHECKED]]
        same = np.mean([text == other for text, other in zip(found, expected)])
        print(f"{name} {contender}: {same:.0%} of {len(expected)} answers are those of one alone")
        if contender == "ours" and same < SAME:
            raise ValueError(
                f"{name}: {SAME:.0%} of the answers must be those of a pipeline that is asked "
                f"alone; received {same:.0%}."
            )
    lengths = [len(answer.text) for answer in loads["ours"].answers]
    print(
        f"{name}: answers of {min(lengths)} to {max(lengths)} tokens, mean "
        f"{statistics.mean(lengths):.0f}",
        flush=True,
    )


def _rate_rows(label, rates):
    for contender, found in rates.items():
        if contender != "ours":
            ratio = statistics.median(own / other for own, other in zip(rates["ours"], found))
            medians = map(statistics.median, (rates["ours"], found))
            case = f"{label} vs {contender}"
            yield harness.Row(case, *medians, "tokens/s", ratio, GOALS[contender])


def _first_row(label, firsts):
    steps = statistics.median(firsts)
    case = f"{label} first token, p95, vs {MOST_STEPS} steps"
    return harness.Row(case, steps, MOST_STEPS, "steps", MOST_STEPS / steps, 1.0)


def _light_rows(name, lights):
    """Yield rows of the light request beside the heavy one, with its time alone and with that of
    another server."""
    alone, beside = ([1000 * pair[index] for pair in lights["ours"]] for index in (0, 1))
    case = f"{name} light beside heavy vs {MOST_TIMES} times alone"
    ratio = statistics.median(MOST_TIMES * one / other for one, other in zip(alone, beside))
    most = MOST_TIMES * statistics.median(alone)
    yield harness.Row(case, statistics.median(beside), most, "ms", ratio, 1.0)
    if "before" in lights:
        others = [1000 * pair[1] for pair in lights["before"]]
        ratio = statistics.median(other / own for own, other in zip(beside, others))
        medians = map(statistics.median, (beside, others))
        yield harness.Row(f"{name} light beside heavy vs before", *medians, "ms", ratio)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("generate_load", __doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="Folder to keep the models.")
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="Checkout of an earlier server."
    )
    parser.add_argument("--only", choices=FAMILIES, help="Model to measure alone.")
    parser.add_argument(
        "--clients", type=harness.count, default=32, help="Clients at once. Default: 32."
    )
    parser.add_argument(
        "--seconds", type=float, default=25.0, help="Seconds of a load. Default: 25."
    )
    parser.add_argument(
        "--rounds", type=harness.count, default=2, help=harness.ROUNDS_HELP.format(2)
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

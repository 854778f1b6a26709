"""Training of the Transformer of `training/recipes/multi30k-transformer.toml`, from files to steps.

    python -m benchmarks.train_speed SOURCES TARGETS [--rounds N] [--json FILE] [--quick]

Files as `seqkeras train translation` takes them. Four questions:

    step     tokens/s of a training step: forward, loss, backward, clipping, Adam. Rivals are the
             same Transformer of keras_nlp's blocks, and PyTorch's `nn.Transformer` where
             benchmarks/requirements.txt is installed, in this process with as many threads. All get
             the same batches, without dropout and with the recipe's; tokens are real target tokens.
    input    batches of the input pipeline alone, beside the steps that they feed
    budget   real tokens/s of batches by a token budget, beside as many rows a batch as they come
    start    the command until its first step is saved, in a process of its own
"""

import dataclasses
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import harness, training_steps, whole_steps
from benchmarks.translation_step import recipe_step
from seqkeras.memory import keep_freed_memory

RECIPE = harness.CHECKOUT / "training/recipes/multi30k-transformer.toml"
SMALL = {
    "num_layers": 1,
    "hidden_dim": 8,
    "feed_forward_dim": 11,
    "num_heads": 2,
    "vocab_size": 120,
    "batch_tokens": 128,
}
STEP_GOALS = {"keras_nlp": 1.0, "torch": 0.9}
INPUT_GOAL, BUDGET_GOAL = 5.0, 1.5
START = 20  # seconds
READ_AHEAD = 50  # batches of the input pipeline that are taken at once: more than it holds ready


def measure(options):
    """Time the four; returns the rows."""
    keep_freed_memory()  # as `seqkeras train` does; for all of this process
    training_steps.quiet_tensorflow()
    recipe = harness.recipe_of(RECIPE)
    recipe |= SMALL if options.quick else {}
    del recipe["task"]
    rounds = harness.rounds_of(options)
    task, run, batches = _task(recipe, options)
    rows = []
    for dropout in (0.0, recipe["dropout"]):
        rows += _compare_steps(task.options, run, batches, dropout, rounds)
    rows += _compare_batches(task, run, batches, rounds)
    rows.append(_start(options))
    print(f"measured on {training_steps.machine()}; medians of {rounds} rounds")
    return rows


def _task(recipe, options):
    """Return the task of the command, its run and its batches."""
    from seqkeras.training.run_of_task import run_files
    from seqkeras.training.tasks.translation import TranslationOptions

    files = {"file": str(options.sources), "targets": str(options.targets)}
    task = TranslationOptions(**files, **recipe).make()
    train, _ = task.reading.read()
    run = run_files(task, Path(), train, train[:1], task.reading.tokenizers(train))
    return task, run, task.modelling.batches(train, run)


def _compare_steps(options, run, batches, dropout, rounds):
    """Return the rows of a training step, beside every rival that is installed."""
    from benchmarks.train_speed_rivals import keras_nlp_step, torch_step
    from seqkeras.training.parts.translation_models import model_of

    options = dataclasses.replace(options, dropout=dropout)
    sizes = [len(run.tokenizers[role]) for role in ("source", "target")]
    steps = {"ours": recipe_step(model_of(options, *sizes), options)}
    for name, make in (("keras_nlp", keras_nlp_step), ("torch", torch_step)):
        try:
            steps[name] = make(options, sizes[0])
        except ImportError as error:
            print(f"{name}: skipped; {error}")
    taken = list(itertools.islice(batches.from_step(0), rounds + harness.WARM_UP))
    for name, step in steps.items():
        loss = step(*taken[-1])
        whole_steps.require_first_loss(f"dropout {dropout:g}: {name}", loss, sizes[1])
    times = harness.times_in_turn(
        {name: lambda number, step=step: step(*taken[number]) for name, step in steps.items()},
        rounds,
    )
    tokens = [np.count_nonzero(targets) for _, targets in taken[:rounds]]
    return [
        harness.compare_rates(
            f"step dropout {dropout:g} vs {name}", tokens, times, name, "tokens/s", STEP_GOALS[name]
        )
        for name in steps
        if name != "ours"
    ]


class _AsTheyCome:
    """An order of `Batches`: rows shuffled, and so many to each batch."""

    def __init__(self, num_rows, batch_size, seed):
        self.num_rows, self.batch_size, self.seed = num_rows, batch_size, seed

    def from_step(self, step):
        rows = np.random.default_rng(self.seed).permutation(self.num_rows)
        for start in range(step * self.batch_size, len(rows), self.batch_size):
            yield rows[start : start + self.batch_size]


def _compare_batches(task, run, batches, rounds):
    """Return the rows of the input pipeline and of the token budget."""
    from seqkeras.data.batches import Batches

    step = recipe_step(task.modelling.model(run), task.options)
    num_rows = len(batches.order.lengths)
    batch_size = max(1, num_rows // batches.order.batches_per_pass)
    as_they_come = Batches(*batches.arrays, _AsTheyCome(num_rows, batch_size, task.options.seed))
    count = rounds + harness.WARM_UP
    taken = {
        "ours": list(itertools.islice(batches.from_step(0), count)),
        "as they come": list(itertools.islice(as_they_come.from_step(0), count)),
    }
    rounds = min(map(len, taken.values())) - harness.WARM_UP
    pipeline = iter(batches.for_fit(0))
    times = harness.times_in_turn(
        {name: lambda number, of=of: step(*of[number]) for name, of in taken.items()}
        | {"input": lambda _: list(itertools.islice(pipeline, READ_AHEAD))},
        rounds,
    )
    times["input"] = [seconds / READ_AHEAD for seconds in times["input"]]
    rates = {
        name: sum(np.count_nonzero(targets) for _, targets in of[:rounds]) / sum(times[name])
        for name, of in taken.items()
    }
    return [
        harness.compare_times(
            "input alone vs its step", times["input"], times["ours"], "ms", 1000, INPUT_GOAL
        ),
        harness.Row(
            f"token budget vs {batch_size} rows as they come",
            *rates.values(),
            "tokens/s",
            rates["ours"] / rates["as they come"],
            BUDGET_GOAL,
        ),
    ]


def _start(options):
    """Return seconds from the command to its first step."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "training", "translation", str(options.sources.resolve())]
        command += ["--targets", str(options.targets.resolve()), "--config", str(RECIPE)]
        command += ["--out", str(out), "--steps-per-save", "1"]
        if options.quick:
            command += harness.as_options(SMALL)
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=harness.CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            while not (out / "checkpoint.keras").exists():
                if process.poll() is not None:
                    raise ValueError(process.stderr.read().decode(errors="replace").strip())
                time.sleep(0.02)
            elapsed = time.perf_counter() - began
        finally:
            process.kill()
            process.communicate()
    return harness.Row(f"start vs {START} s", elapsed, START, "s", START / elapsed, goal=1)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("train_speed", __doc__.splitlines()[0])
    parser.add_argument(
        "sources", type=harness.file, help="Source file, a sentence a line, plain or .gz."
    )
    parser.add_argument("targets", type=harness.file, help="Target file, a translation a line.")
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="Timed steps of each. Default: 20."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

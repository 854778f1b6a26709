"""Fine-tuning of a BERT by a recipe: tokens/s of its steps and, over seeds, the scores it reaches.

    python -m benchmarks.finetuning RECIPE PRETRAINED FILE [VALIDATION] [--rounds N] [--seeds N]
                                    [--max-steps N] [--json FILE] [--quick]

RECIPE is a file of `training/recipes` of classification, tagging or question answering, PRETRAINED
a folder of Hugging Face, FILE and VALIDATION the files of the recipe's command.

    step    tokens/s of a step: forward, loss, backward, clipping, AdamW. Rivals are keras_nlp's
            `BertBackbone` of the same size with Keras's AdamW, and transformers on PyTorch where
            benchmarks/requirements.txt is installed, in this process with as many threads; and a
            step of ours in bfloat16 beside float32, which only some processors have.
    scores  with --seeds N: the whole recipe by our command, and on PyTorch from the same weights
            with the same hyper-parameters, once a seed each. PyTorch's weights are then read into
            our model, so that one code answers and counts. The score is the recipe's `best_by`, or
            the task's first, of the last step on both sides. --max-steps makes both shorter, with
            the schedule of so many steps.

All get the same batches. Tokens are real ones, without padding.
"""

import itertools
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import harness, training_steps, whole_steps
from seqkeras.memory import keep_freed_memory

STEP_GOALS = {"keras_nlp": 1.0, "transformers": 0.9}
QUICK = {"passes": 1, "batch_size": 4}


def measure(options):
    """Time the steps, and compare the scores of seeds; returns the rows."""
    keep_freed_memory()  # as `seqkeras train` does; for all of this process
    training_steps.quiet_tensorflow()
    recipe = harness.recipe_of(options.recipe)
    changes = dict(QUICK) if options.quick else {}
    if options.max_steps:
        changes["max_steps"] = options.max_steps
    recipe |= changes
    rows = _compare_steps(*_prepared(recipe, options, seed=0), harness.rounds_of(options))
    if options.seeds:
        rows.append(_compare_scores(recipe, changes, options))
    print(f"measured on {training_steps.machine()}")
    return rows


def _prepared(recipe, options, seed):
    """Return the task of the command, its run, its batches, its validation examples, and what
    answers."""
    from seqkeras.training.tasks import TASKS

    given = {name: value for name, value in recipe.items() if name != "task"}
    given |= {"file": str(options.file), "pretrained": str(options.pretrained), "seed": seed}
    if options.validation:
        given["validation"] = str(options.validation)
    task = TASKS[recipe["task"]](**given).make()
    with tempfile.TemporaryDirectory() as folder:
        task.folder = Path(folder)
        train, validation = task.reading.read()
        run, answer = task.prepared(
            task.folder, train, task.reading.kept(validation), task.reading.tokenizers(train)
        )
        return task, run, task.modelling.batches(train, run), validation, answer


def _num_steps(task, batches):
    """Return how many steps the command trains."""
    return task.options.max_steps or task.modelling.num_steps(batches)


def _compare_steps(task, run, batches, validation, answer, rounds):
    """Return the rows of a training step, beside every rival that is installed."""
    import keras

    from benchmarks.finetuning_rivals import TorchModel, keras_nlp_model
    from seqkeras.training.fit import computing_in
    from seqkeras.training.optimizing import make_optimizer

    loss, num_steps = task.modelling.loss(), _num_steps(task, batches)

    def our_step(precision=None):
        with computing_in(precision):
            model = task.modelling.model(run)
        return whole_steps.keras_step(model, make_optimizer(task.options, num_steps), loss)

    optimizer = make_optimizer(task.options, num_steps)
    keras_own = getattr(keras.optimizers, type(optimizer).__name__)
    rival = keras_nlp_model(task, run), keras_own.from_config(optimizer.get_config())
    steps = {
        "ours": our_step(),
        "bfloat16": our_step("bfloat16"),
        "keras_nlp": whole_steps.keras_step(*rival, loss),
    }
    try:
        steps["transformers"] = TorchModel(task, run, num_steps).step
    except ImportError as error:
        print(f"transformers: skipped; {error}")
    taken = list(itertools.islice(batches.from_step(0), rounds + harness.WARM_UP))
    losses = {name: step(*taken[-1]) for name, step in steps.items()}
    print("first losses: " + ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items()))
    del losses["keras_nlp"]  # its weights are random
    if max(losses.values()) > 1.5 * min(losses.values()):
        raise ValueError("the first losses differ by more than half: the models are not the same.")
    times = harness.times_in_turn(
        {name: lambda number, step=step: step(*taken[number]) for name, step in steps.items()},
        rounds,
    )
    tokens = [int(np.sum(inputs["lengths"])) for inputs, *_ in taken[:rounds]]
    rows = [
        harness.compare_rates(f"step vs {name}", tokens, times, name, "tokens/s", STEP_GOALS[name])
        for name in STEP_GOALS
        if name in steps
    ]
    times = {"ours": times["bfloat16"], "float32": times["ours"]}
    case = "step in bfloat16 vs float32"
    return [*rows, harness.compare_rates(case, tokens, times, "float32", "tokens/s")]


def _compare_scores(recipe, changes, options):
    """Return the row of the mean scores over seeds; the goal: the rival's mean less the seeds'
    spread."""
    scores = {"ours": [], "transformers": []}
    for seed in range(options.seeds):
        prepared = _prepared(recipe, options, seed)
        name, score = _score_of_torch(*prepared)
        scores["transformers"].append(score)
        scores["ours"].append(_our_score(options, changes, prepared[0].name, name, seed))
        print(f"seed {seed}: " + ", ".join(f"{name} {of[-1]:.2%}" for name, of in scores.items()))
    means = {name: statistics.mean(of) for name, of in scores.items()}
    spread = max(max(of) - min(of) for of in scores.values())
    return harness.Row(
        f"score over {options.seeds} seeds vs transformers",
        *(100 * mean for mean in means.values()),
        "%",
        means["ours"] / means["transformers"],
        1 - spread / means["transformers"],
    )


def _our_score(options, changes, task, score, seed):
    """Return the score of that name after the last step, by the command in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ["-m", "training", task, options.file.resolve()]
        command += ["--config", options.recipe.resolve(), "--seed", seed, "--out", out]
        command += ["--pretrained", options.pretrained.resolve()]
        if options.validation:
            command += ["--validation", options.validation.resolve()]
        command += harness.as_options(changes)
        harness.run_python(*command)
        return float(harness.last_step(out)[score])


def _score_of_torch(task, run, batches, validation, answer):
    """Return the name of the score, and that of the last step of PyTorch's training."""
    from benchmarks.finetuning_rivals import TorchModel

    num_steps = _num_steps(task, batches)
    rival = TorchModel(task, run, num_steps)
    for inputs, targets in itertools.islice(batches.from_step(0), num_steps):
        rival.step(inputs, targets)
    answers = answer(rival.in_keras(), [example.text for example in validation])
    found = task.scoring.validation_scores(validation, answers)
    name = task.options.best_by or next(iter(found))
    return name, found[name]


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("finetuning", __doc__.splitlines()[0])
    parser.add_argument("recipe", type=harness.file, help="Recipe, a file of training/recipes.")
    parser.add_argument("pretrained", type=Path, help="Folder of Hugging Face.")
    parser.add_argument("file", type=harness.file, help="Training file.")
    parser.add_argument("validation", type=harness.file, nargs="?", help="Validation file, if any.")
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="Timed steps of each. Default: 20."
    )
    parser.add_argument("--seeds", type=harness.count, help="Seeds whose scores are compared.")
    parser.add_argument(
        "--max-steps", type=harness.count, help="Steps of a training. Default: the recipe's."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

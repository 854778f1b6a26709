"""Training steps of the language models of `training/recipes/shakespeare-*.toml`.

    python -m benchmarks.language_speed TEXT [--rounds N] [--json FILE] [--quick]

A text as `seqkeras train language-model` takes it. A step is forward, loss, backward, clipping
and the optimizer, on batches of the recipe. The GPT's rival is the same model of PyTorch's
`nn.TransformerEncoderLayer`, where benchmarks/requirements.txt is installed, in this process with
as many threads: both have learned positions and Adam. The QRNN's rival is our LSTM of equal size.
"""

import itertools
import sys
from pathlib import Path

from benchmarks import harness, training_steps, whole_steps

SMALL = {"num_layers": 1, "hidden_dim": 8, "batch_size": 2, "context": 5}
SMALL_GPT = SMALL | {"num_heads": 2}
AS_IN_TORCH = {"position_kind": "learned", "optimizer": "adam", "weight_decay": 0.0}
TORCH_GOAL, LSTM_GOAL = 1.0, 2.0


def measure(options):
    """Time the steps of three recipes; returns the rows."""
    training_steps.quiet_tensorflow()
    rounds = harness.rounds_of(options)
    steps, taken = {}, {}
    for model in ("gpt", "qrnn", "lstm"):
        steps[model], taken[model], vocab_size = _step(model, options, rounds)
    try:
        steps["torch"] = _torch_step(_recipe("gpt", options.quick), vocab_size)
        taken["torch"] = taken["gpt"]
    except ImportError as error:
        print(f"torch: skipped; {error}")
    for name, step in steps.items():
        loss = step(*taken[name][-1])
        whole_steps.require_first_loss(name, loss, vocab_size)
    times = harness.times_in_turn(
        {name: lambda number, name=name: steps[name](*taken[name][number]) for name in steps},
        rounds,
    )
    pairs = [("gpt", "torch", TORCH_GOAL)] if "torch" in steps else []
    pairs.append(("qrnn", "lstm", LSTM_GOAL))
    print(f"measured on {training_steps.machine()}; medians of {rounds} steps")
    return [
        harness.compare_times(
            f"step {ours} vs {rival}", times[ours], times[rival], "ms", 1000, goal
        )
        for ours, rival, goal in pairs
    ]


def _recipe(model, quick):
    path = harness.CHECKOUT / f"training/recipes/shakespeare-{model}.toml"
    values = harness.recipe_of(path)
    del values["task"]
    if model == "gpt":
        return values | AS_IN_TORCH | (SMALL_GPT if quick else {})
    return values | (SMALL if quick else {})


def _step(model, options, rounds):
    """Return a step of a recipe, (inputs, targets) -> loss, its batches, and how many tokens there
    are."""
    from seqkeras.training.optimizing import make_optimizer
    from seqkeras.training.run_of_task import run_files
    from seqkeras.training.tasks.language_model import LanguageModelOptions

    task = LanguageModelOptions(files=(str(options.text),), **_recipe(model, options.quick)).make()
    texts, passages = task.reading.read()
    run = run_files(task, Path(), texts, passages[:1], task.reading.tokenizers(texts))
    batches = task.modelling.batches(texts, run)
    optimizer = make_optimizer(task.options, task.modelling.num_steps(batches))
    step = whole_steps.keras_step(task.modelling.model(run), optimizer, task.modelling.loss())
    taken = list(itertools.islice(batches.from_step(0), rounds + harness.WARM_UP))
    return step, taken, len(run.tokenizers["text"])


def _torch_step(recipe, vocab_size):
    """Return the step of the GPT in PyTorch, with Adam and the same clipping.

    Raises:
        ImportError: if PyTorch is not installed.
    """
    torch = harness.import_rival("torch")
    dim, context = recipe["hidden_dim"], recipe["context"]

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = torch.nn.Embedding(vocab_size, dim)
            torch.nn.init.normal_(self.tokens.weight, std=0.02)
            self.positions = torch.nn.Embedding(context, dim)
            block = torch.nn.TransformerEncoderLayer(
                dim,
                recipe["num_heads"],
                4 * dim,
                recipe["dropout"],
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            self.blocks = torch.nn.TransformerEncoder(
                block, recipe["num_layers"], torch.nn.LayerNorm(dim), enable_nested_tensor=False
            )

        def forward(self, token_ids):
            length = token_ids.shape[1]
            hidden = self.tokens(token_ids) + self.positions(torch.arange(length))
            later = torch.nn.Transformer.generate_square_subsequent_mask(length)
            return self.blocks(hidden, mask=later, is_causal=True) @ self.tokens.weight.T

    return whole_steps.torch_step(torch, Model(), torch.nn.CrossEntropyLoss(), 1e-5, 1.0)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("language_speed", __doc__.splitlines()[0])
    parser.add_argument("text", type=harness.file, help="Text file, plain or .gz.")
    parser.add_argument(
        "--rounds", type=harness.count, default=100, help="Timed steps of each. Default: 100."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""Options are the fields of dataclasses: `--batch-size 64` sets `batch_size`.

`seqkeras.training.commands` makes the command line of them.
"""

import dataclasses
import importlib.util
import math
from pathlib import Path

import click

from seqkeras.runs import MODEL, RECORD

MOST = 2**31 - 1  # of a count: more fits no size of a tensor


def option(default, type, help, decides=True):
    """Return a dataclass field that is also an option of the command line.

    Args:
        decides: whether the trained model depends on it; such options stand in options.json.
    """
    return dataclasses.field(
        default=default, metadata={"type": type, "help": help, "decides": decides}
    )


def argument(type, help, several=False):
    """Return a dataclass field that stands on the command line without a name; a tuple of
    `several`."""
    metadata = {"type": type, "help": help, "is_argument": True, "several": several}
    return dataclasses.field(default=None, metadata=metadata)


def shown(name):
    """Return an option as the command line has it."""
    return f"--{name.replace('_', '-')}"


class DataFile(click.ParamType):
    """The path of a file of the user's; a run continues only while its content stays the same."""

    name = "file"
    of_folder = "is a folder; name a file"  # what is wrong with one

    def convert(self, value, parameter, context):
        if isinstance(value, str) and Path(value).is_dir():
            self.fail(f"{value}: {self.of_folder}.", parameter, context)
        if not isinstance(value, str) or not Path(value).is_file():
            self.fail(f"{value}: no such file.", parameter, context)
        return value

    def read_file(self, path):
        """Return the file that is read where the option is this path."""
        return path


class RunFolder(click.ParamType):
    """The folder of a finished run; a training that begins from it goes on only while it stays."""

    name = "run"

    def convert(self, value, parameter, context):
        if not isinstance(value, str) or not (Path(value) / RECORD).is_file():
            self.fail(f"{value}: no finished run, {RECORD} is missing.", parameter, context)
        return value

    def read_file(self, path):
        """Return the file that is read where the option is this path."""
        return str(Path(path) / MODEL)


class Patterns(click.ParamType):
    """Patterns with commas between them, as a tuple."""

    name = "patterns"

    def convert(self, value, parameter, context):
        patterns = value.split(",") if isinstance(value, str) else value
        if not all(isinstance(pattern, str) and pattern for pattern in patterns):
            self.fail(f"needs patterns with commas between them; received {value!r}.")
        return tuple(patterns)


class Names(click.ParamType):
    """Names with commas between them, as a tuple; those that may be, if these are given."""

    name = "names"

    def __init__(self, known=None):
        self.known = known

    def convert(self, value, parameter, context):
        names = value.split(",") if isinstance(value, str) else value
        if not all(isinstance(name, str) and name for name in names):
            self.fail(f"needs names with commas between them; received {value!r}.")
        if len(set(names)) < len(names):
            self.fail(f"each name may stand once; received {value!r}.")
        for name in names:
            if self.known is not None and name not in self.known:
                self.fail(f"must be of {', '.join(self.known)}; received {name!r}.")
        return tuple(names)


class Count(click.IntRange):
    """An integer from a least one on."""

    def convert(self, value, parameter, context):
        count = super().convert(value, parameter, context)
        if count > MOST:
            self.fail(f"{count:,} is more than {MOST:,}.", parameter, context)
        return count


def at_least(minimum):
    return Count(min=minimum)


class Number(click.FloatRange):
    """A number within bounds: FloatRange alone lets NaN pass."""

    def convert(self, value, parameter, context):
        number = super().convert(value, parameter, context)
        if math.isnan(number):
            self.fail(f"nan is not in the range {self._describe_range()}.", parameter, context)
        return number


STRATEGIES = ("auto", "one", "mirrored", "multi-worker", "tpu")
SCHEDULES = ("cosine", "linear", "noam", "inverse-root", "constant")
OPTIMIZERS = ("adam", "adamw", "sgd", "lion", "adafactor", "keras-adam")
POSITIVE = Number(min=0, min_open=True, max=float("inf"), max_open=True)
NOT_NEGATIVE = Number(min=0, max=float("inf"), max_open=True)
FRACTION = Number(min=0, max=1)
BETA = Number(min=0, max=1, max_open=True)
WITH_BETAS = ("adam", "adamw", "lion", "keras-adam")
WITH_LAST_RATE = ("cosine", "linear")


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """What every training takes; a task's options come after these.

    The docstring of a subclass is the help of its command; the first line stands in the list of
    all.
    """

    seed: int = option(
        0,
        click.IntRange(0, 2**32 - 1),
        "Seed of the initial weights, of the order of examples, and of random draws.",
    )
    batch_size: int = option(128, at_least(1), "Examples in a batch.")
    batch_tokens: int | None = option(
        None,
        at_least(1),
        "Tokens in a batch, padding included, instead of --batch-size. Choose it when lengths "
        "vary much.",
    )
    learning_rate: float = option(3e-3, POSITIVE, "Learning rate at the end of warm-up.")
    warmup_steps: int = option(100, at_least(0), "Steps up to the full learning rate.")
    warmup_share: float | None = option(
        None, FRACTION, "Share of all steps that warm-up takes, instead of --warmup-steps."
    )
    schedule: str = option(
        "cosine", click.Choice(SCHEDULES), "Course of the learning rate after warm-up."
    )
    last_learning_rate: float | None = option(
        None,
        NOT_NEGATIVE,
        "Learning rate of the last step (schedules cosine and linear). Default: 0.",
    )
    optimizer: str = option(
        "adam",
        click.Choice(OPTIMIZERS),
        "Optimizer, from seqkeras.optimizers; keras-adam is Keras's Adam unchanged.",
    )
    beta1: float | None = option(None, BETA, "Decay rate of the first moment. Default: 0.9.")
    beta2: float | None = option(
        None, BETA, "Decay rate of the second moment (Adam, AdamW: 0.999; Lion: 0.99)."
    )
    weight_decay: float | None = option(
        None,
        NOT_NEGATIVE,
        "Decoupled weight decay of matrices. Default: 0.004 for AdamW, otherwise 0.",
    )
    gradient_accumulation: int = option(
        1,
        at_least(1),
        "Batches whose gradients are added up for one step. Raise it when memory is too small for "
        "the batch size.",
    )
    clip_norm: float = option(
        1.0,
        POSITIVE,
        "Largest global norm of the gradients; larger gradients are scaled down to it.",
    )
    passes: int = option(3, at_least(1), "Passes over the training examples (epochs).")
    max_steps: int | None = option(None, at_least(1), "Training steps, instead of --passes.")
    ema: float | None = option(
        None,
        Number(0, 1, min_open=True, max_open=True),
        "Decay rate of a moving average of the weights, such as 0.999; the average is evaluated "
        "and kept. Default: no average.",
    )
    average_checkpoints: int = option(
        1, at_least(1), "Last checkpoints whose mean is evaluated and kept."
    )
    mixed_precision: str | None = option(
        None,
        click.Choice(["float16", "bfloat16"]),
        "Precision of the computation; weights stay in float32. Default: float32.",
    )
    xla: bool = option(False, bool, "Compile TensorFlow's training steps with XLA.")
    freeze: tuple = option(
        (),
        Patterns(),
        "Patterns of weight paths, separated by commas; weights that match do not learn.",
    )
    start_from: str | None = option(None, RunFolder(), "Run whose weights training begins with.")
    steps_per_save: int = option(100, at_least(1), "Steps between two checkpoints.")
    looks: int = option(
        5,
        at_least(1),
        "Evaluations on the validation examples, spread evenly over the checkpoints.",
    )
    steps_per_look: int | None = option(
        None, at_least(1), "Steps between two evaluations, instead of --looks."
    )
    best_by: str | None = option(
        None, str, "Validation score that selects the best model. Default: the task's first score."
    )
    keep: str = option(
        "best",
        click.Choice(["best", "last"]),
        "Model that the run keeps: the best by --best-by, or the last.",
    )
    patience: int | None = option(
        None,
        at_least(1),
        "Evaluations without a better model after which training stops. Default: training never "
        "stops early.",
    )
    strategy: str = option(
        "auto",
        click.Choice(STRATEGIES),
        "Devices to train on; docs/distributed.md describes each strategy.",
        False,
    )
    tensorboard: bool = option(True, bool, "Write events for TensorBoard.", decides=False)

    # Names of the options that --help shows first; `seqkeras.training.commands` has the usual
    # names.
    USUAL = ()
    # Defaults that follow from another option: its name -> name of an option -> default.
    DEFAULTS_WITH = {}

    def check(self):
        """Raise a `click.UsageError` for options that do not go together; nothing is read yet."""
        return None

    def is_given(self, name):
        """Return whether an option differs from its default; False of one that the task has not."""
        return getattr(self, name, None) != getattr(type(self), name, None)

    def files_within(self):
        """Return a dictionary: name of a file of the user's -> paths of the files that it names; a
        run continues only while their content stays the same, too."""
        return {}

    def fit_problems(self):
        """Yield a sentence for each two options that do not go together."""
        if self.schedule == "noam" and not hasattr(self, "hidden_dim"):
            yield (
                "--schedule noam needs a task with --hidden-dim; choose inverse-root, which has "
                "the same form."
            )
        for name, value in (("beta1", self.beta1), ("beta2", self.beta2)):
            if value is not None and self.optimizer not in WITH_BETAS:
                yield f"--{name} is for {', '.join(WITH_BETAS)}; {self.optimizer} has none."
        if self.last_learning_rate is not None:
            if self.schedule not in WITH_LAST_RATE:
                yield f"--last-learning-rate is for --schedule {' or '.join(WITH_LAST_RATE)}."
            elif self.last_learning_rate > self.learning_rate:
                yield (
                    f"--last-learning-rate must be at most --learning-rate {self.learning_rate:g}; "
                    f"received {self.last_learning_rate:g}."
                )
        if self.warmup_share is not None and self.is_given("warmup_steps"):
            yield "--warmup-share and --warmup-steps are two lengths of one warm-up; choose one."
        if self.ema is not None and self.average_checkpoints > 1:
            yield "--ema and --average-checkpoints are two averages; choose one."
        if self.ema is not None and self.optimizer == "keras-adam":
            yield "--ema is for the optimizers of seqkeras; choose --optimizer adam."
        if self.gradient_accumulation > 1 and self.optimizer == "keras-adam":
            yield "--gradient-accumulation is for the optimizers of seqkeras; choose adam."
        if self.tensorboard and importlib.util.find_spec("tensorboard") is None:
            yield (
                "--tensorboard needs the package tensorboard, which is not installed: pip install "
                "tensorboard, or choose --tensorboard false."
            )

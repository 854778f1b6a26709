"""Options are the fields of dataclasses: `--batch-size 64` sets `batch_size`.

`training.commands` makes the command line of them.
"""

import dataclasses
import importlib.util
import math
from pathlib import Path

import click

from seqkeras.runs import MODEL, RECORD

MOST = 2**31 - 1  # of a count: more fits no size of a tensor


def option(default, type, help, decides=True):
    """A dataclass field that is also an option of the command line.

    Args:
        decides: whether the trained model depends on it; such options stand in options.json.
    """
    return dataclasses.field(
        default=default, metadata={"type": type, "help": help, "decides": decides}
    )


def argument(type, help, several=False):
    """A dataclass field that stands on the command line without a name; a tuple of `several`."""
    metadata = {"type": type, "help": help, "is_argument": True, "several": several}
    return dataclasses.field(default=None, metadata=metadata)


def shown(name):
    """An option as the command line has it."""
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
        """The file that is read where the option is this path."""
        return path


class RunFolder(click.ParamType):
    """The folder of a finished run; a training that begins from it goes on only while it stays."""

    name = "run"

    def convert(self, value, parameter, context):
        if not isinstance(value, str) or not (Path(value) / RECORD).is_file():
            self.fail(f"{value}: no finished run, {RECORD} is missing.", parameter, context)
        return value

    def read_file(self, path):
        """The file that is read where the option is this path."""
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

    seed: int = option(0, click.IntRange(0, 2**32 - 1), "Of weights, samples and their order.")
    batch_size: int = option(128, at_least(1), "Examples in each step.")
    batch_tokens: int | None = option(
        None, at_least(1), "Tokens in each step, padding included, instead of a batch size."
    )
    learning_rate: float = option(3e-3, POSITIVE, "At the end of the warm-up.")
    warmup_steps: int = option(100, at_least(0), "Steps until the full learning rate.")
    warmup_share: float | None = option(
        None, FRACTION, "Share of all steps until it, instead of --warmup-steps."
    )
    schedule: str = option(
        "cosine", click.Choice(SCHEDULES), "How the learning rate goes on after the warm-up."
    )
    last_learning_rate: float | None = option(
        None, NOT_NEGATIVE, "Of cosine and linear, in the end; by default zero."
    )
    optimizer: str = option(
        "adam", click.Choice(OPTIMIZERS), "Of seqkeras.optimizers; keras-adam: Keras's as it is."
    )
    beta1: float | None = option(
        None, BETA, "Decay of the mean of gradients; by default Keras's, 0.9."
    )
    beta2: float | None = option(
        None, BETA, "Of adam and adamw that of their squares, 0.999; of lion 0.99."
    )
    weight_decay: float | None = option(
        None, NOT_NEGATIVE, "Of matrices, decoupled; by default Keras's: 0.004 of adamw, else 0."
    )
    gradient_accumulation: int = option(
        1, at_least(1), "Batches whose gradients make one step together."
    )
    clip_norm: float = option(1.0, POSITIVE, "Largest norm of all gradients together.")
    passes: int = option(3, at_least(1), "How often the model sees each training example.")
    max_steps: int | None = option(None, at_least(1), "Steps of the training, instead of passes.")
    ema: float | None = option(
        None, Number(0, 1, min_open=True, max_open=True), "Decay of a moving average of weights."
    )
    average_checkpoints: int = option(
        1, at_least(1), "Last checkpoints whose mean is looked at and kept."
    )
    mixed_precision: str | None = option(
        None, click.Choice(["float16", "bfloat16"]), "Compute in it; weights stay in float32."
    )
    xla: bool = option(False, bool, "Compile the steps of TensorFlow by XLA.")
    freeze: tuple = option((), Patterns(), "Weights that do not learn: patterns of paths.")
    start_from: str | None = option(None, RunFolder(), "Run whose weights to begin with.")
    steps_per_save: int = option(100, at_least(1), "Steps between two checkpoints.")
    looks: int = option(
        5, at_least(1), "Looks at the validation examples, at checkpoints, evenly spread."
    )
    steps_per_look: int | None = option(
        None, at_least(1), "Steps between two looks, instead of --looks."
    )
    best_by: str | None = option(
        None, str, "Validation score that tells the best model; the task's first by default."
    )
    keep: str = option("best", click.Choice(["best", "last"]), "Which model the run ends with.")
    patience: int | None = option(None, at_least(1), "Looks without a better model until the end.")
    strategy: str = option(
        "auto", click.Choice(STRATEGIES), "On which devices, see docs/distributed.md.", False
    )
    tensorboard: bool = option(True, bool, "Write events for TensorBoard.", decides=False)

    # Defaults that follow from another option: its name -> name of an option -> default.
    DEFAULTS_WITH = {}

    def check(self):
        """Raise a `click.UsageError` for options that do not go together; nothing is read yet."""
        return None

    def is_given(self, name):
        """Whether an option differs from its default; False of one that the task has not."""
        return getattr(self, name, None) != getattr(type(self), name, None)

    def files_within(self):
        """Name of a file of the user's -> paths of the files that it names; a run continues only
        while their content stays the same, too."""
        return {}

    def fit_problems(self):
        """Yields a sentence for each two options that do not go together."""
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

"""Options are the fields of dataclasses: `--batch-size 64` sets `batch_size`.

A dataclass of options may hold others. The command line, options.json and a `--config` file name
all options alike, whichever dataclass holds them; `seqkeras.training.commands` makes the command
line of them.
"""

import dataclasses
import functools
import importlib.util
import math
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import click

from seqkeras.runs import MODEL, RECORD
from seqkeras.training.options.spaces import BATCH, DECAY, RATE, Space

if TYPE_CHECKING:
    from seqkeras.training.task import Task

__all__ = ["DataFile", "FitOptions", "Options", "argument", "at_least", "option", "part"]

MOST = 2**31 - 1  # of a count: more fits no size of a tensor


def option(
    default: Any, type: Any, help: str, decides: bool = True, search: Space | None = None
) -> Any:
    """Return a dataclass field that is also an option of the command line.

    Args:
        default: value where the user gives none.
        type: a type of `click`, or a class such as `int`.
        help: help of the option, a sentence.
        decides: whether the trained model depends on it; such options stand in options.json.
        search: where `seqkeras train tune` looks for its value, from
            `seqkeras.training.options.spaces`; an option that a task declares anew keeps it.

    Returns:
        A field of `dataclasses`.

    Example:
        >>> import click
        >>> from seqkeras.training.options import Options, at_least, option
        >>> class ModelOptions(Options):
        ...     units: int = option(64, at_least(1), "Size of the state.")
        ...     cell: str = option("gru", click.Choice(["gru", "lstm"]), "Recurrent cell.")
        >>> ModelOptions(cell="lstm")
        ModelOptions(units=64, cell='lstm')
    """
    metadata = {"type": type, "help": help, "decides": decides, "search": search}
    return dataclasses.field(default=default, metadata=metadata)


def argument(type: Any, help: str, several: bool = False) -> Any:
    """Return a dataclass field that stands on the command line without a name.

    Args:
        type: a type of `click`, or a class such as `str`.
        help: help of the argument, a sentence.
        several: whether the argument may be given several times; the field is then a tuple.

    Returns:
        A field of `dataclasses`, None where the user gives nothing.

    Example:
        >>> from seqkeras.training.options import DataFile, Options, argument
        >>> class FileOptions(Options):
        ...     file: str = argument(DataFile(), "Training file: a word in each line.")
        >>> FileOptions(file="words.txt").file
        'words.txt'
    """
    metadata = {"type": type, "help": help, "is_argument": True, "several": several}
    return dataclasses.field(default=None, metadata=metadata)


def part(kind: "type[Options]") -> Any:
    """Return a dataclass field that holds further options, those of another `Options`.

    Args:
        kind: a subclass of `Options`.

    Returns:
        A field of `dataclasses`.

    Example:
        >>> from seqkeras.training.options import Options, at_least, option, part
        >>> class ModelOptions(Options):
        ...     units: int = option(64, at_least(1), "Size of the state.")
        >>> class ToyOptions(Options):
        ...     model: ModelOptions = part(ModelOptions)
        >>> ToyOptions(units=32).model.units
        32
    """
    return dataclasses.field(metadata={"part": kind})


def shown(name: str) -> str:
    """Return an option as the command line has it."""
    return f"--{name.replace('_', '-')}"


class DataFile(click.ParamType):
    """The type of an option that is the path of a user's file.

    A run continues only while the content of the file stays the same.

    Raises:
        click.BadParameter: when it is called, if there is no such file.

    Example:
        >>> import pathlib
        >>> from seqkeras.training.options import DataFile
        >>> _ = pathlib.Path("words.txt").write_text("one")
        >>> DataFile()("words.txt")
        'words.txt'
        >>> DataFile()("missing.txt")
        Traceback (most recent call last):
            ...
        click.exceptions.BadParameter: missing.txt: no such file.
    """

    name = "file"
    of_folder = "is a folder; name a file"  # what is wrong with one

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if isinstance(value, str) and Path(value).is_dir():
            self.fail(f"{value}: {self.of_folder}.", parameter, context)
        if not isinstance(value, str) or not Path(value).is_file():
            self.fail(f"{value}: no such file.", parameter, context)
        return value

    def read_file(self, path: str | Path) -> str | Path:
        """Return the file that is read where the option is this path."""
        return path


class RunFolder(click.ParamType):
    """The folder of a finished run; a training that begins from it goes on only while it stays."""

    name = "run"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if not isinstance(value, str) or not (Path(value) / RECORD).is_file():
            self.fail(f"{value}: no finished run, {RECORD} is missing.", parameter, context)
        return value

    def read_file(self, path: str | Path) -> str | Path:
        """Return the file that is read where the option is this path."""
        return str(Path(path) / MODEL)

    def is_run(self, path: str | Path) -> bool:
        """Return whether the folder is a run whose weights are taken by their places, and not one
        that the task itself reads."""
        return True


class Patterns(click.ParamType):
    """Patterns with commas between them, as a tuple."""

    name = "patterns"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        patterns = value.split(",") if isinstance(value, str) else value
        if not all(isinstance(pattern, str) and pattern for pattern in patterns):
            self.fail(f"needs patterns with commas between them; received {value!r}.")
        return tuple(patterns)


class Names(click.ParamType):
    """Names with commas between them, as a tuple; those that may be, if these are given."""

    name = "names"

    def __init__(self, known: Collection[str] | None = None):
        self.known = known

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
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

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        count = super().convert(value, parameter, context)
        if count > MOST:
            self.fail(f"{count:,} is more than {MOST:,}.", parameter, context)
        return count


def at_least(minimum: int) -> "Count":
    """Return the type of an integer that is not below a minimum.

    Args:
        minimum: the least integer that is taken.

    Returns:
        The type, for `option` and `argument`; it raises a `click.BadParameter` for other values.

    Example:
        >>> from seqkeras.training.options import at_least
        >>> at_least(1)("32")
        32
        >>> at_least(1)("0")
        Traceback (most recent call last):
            ...
        click.exceptions.BadParameter: 0 is not in the range x>=1.
    """
    return Count(min=minimum)


class Number(click.FloatRange):
    """A number within bounds: FloatRange alone lets NaN pass."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
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


def options_of(kind: type) -> dict[str, dataclasses.Field]:
    """Return the options of a dataclass and of the parts that it holds, name -> field.

    Where a part has an option of the same name, the field of the dataclass itself counts.
    """
    return _options_of(kind)


@functools.cache
def _options_of(kind):
    declared, fields = {}, {}
    for field in dataclasses.fields(kind):
        if "part" in field.metadata:
            fields |= options_of(field.metadata["part"])
        else:
            fields[field.name] = declared[field.name] = field
    return fields | declared


class Options:
    """Options, and parts that hold further ones; each subclass is a frozen dataclass.

        class Reading(Options):
            seed: int = option(0, int, "Seed.")
            units: int = option(64, int, "Size.")

        class Toy(Options):
            reading: Reading = part(Reading)
            units: int = option(32, int, "Another default.")

        Toy(seed=5).reading == Reading(seed=5, units=32)

    Args:
        values: name -> value of options, or of whole parts; others have their defaults.

    Raises:
        TypeError: if there is no option of a name.

    Example:
        >>> from seqkeras.training.options import Options, at_least, option
        >>> class ModelOptions(Options):
        ...     units: int = option(64, at_least(1), "Size of the state.")
        >>> options = ModelOptions().changed(units=32)
        >>> options.units, options.is_given("units")
        (32, True)
    """

    # Defaults that follow from another option: its name -> name of an option -> default.
    DEFAULTS_WITH: dict = {}
    # Options that must be given: name -> what it is, for the message.
    REQUIRED: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(frozen=True, init=False)(cls)

    def __init__(self, **values: Any):
        known, fields = options_of(type(self)), dataclasses.fields(self)  # type: ignore[arg-type]
        for field in fields:
            if "part" in field.metadata and field.name in values:
                values = values_of(values.pop(field.name)) | values
        if unknown := values.keys() - known.keys():
            raise TypeError(f"{type(self).__name__}: there is no option {sorted(unknown)[0]!r}.")
        values = {name: field.default for name, field in known.items()} | values
        for field in fields:
            value = values.get(field.name)
            if kind := field.metadata.get("part"):
                value = kind(**{name: values[name] for name in options_of(kind)})
            object.__setattr__(self, field.name, value)

    def __getattr__(self, name: str) -> Any:
        kind: Any = type(self)
        held = _part_with(kind, name)
        if held is None or held not in vars(self):
            raise AttributeError(f"{kind.__name__}: there is no option {name!r}.")
        return getattr(vars(self)[held], name)

    def is_given(self, name: str) -> bool:
        """Return whether an option differs from its default; False for an option that there is
        not."""
        field = options_of(type(self)).get(name)
        return field is not None and getattr(self, name) != field.default

    def changed(self, **values: Any) -> Self:
        """Return the options with other values, of parts among them."""
        return type(self)(**values_of(self) | values)

    def check(self) -> None:
        """Refuse options that do not go together; nothing is read yet.

        Raises:
            click.UsageError: with the first of `all_problems`.
        """
        for problem in self.all_problems(self):
            raise click.UsageError(problem)

    def all_problems(self, command: "Options") -> Iterator[str]:
        """Yield a sentence for each option that must be given and is not, and what `problems`
        yields, of the parts first."""
        for name, what in self.REQUIRED.items():
            if not getattr(self, name):
                yield f"{shown(name)} is missing: {what}."
        for held in _parts(self):
            yield from held.all_problems(command)
        yield from self.problems(command)

    def problems(self, command: "Options") -> Iterable[str]:
        """Yield a sentence for each two options that do not go together.

        Args:
            command: all options of the command line.
        """
        return ()

    @classmethod
    def defaults_with(cls) -> dict[str, Any]:
        """Return `DEFAULTS_WITH` of the options and of their parts."""
        defaults = dict(cls.DEFAULTS_WITH)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if "part" in field.metadata:
                defaults |= field.metadata["part"].defaults_with()
        return defaults


def values_of(options: Options) -> dict[str, Any]:
    """Return name -> value of all options, those of parts among them."""
    return {name: getattr(options, name) for name in options_of(type(options))}


@functools.cache
def _part_with(kind, name):
    """Return the name of the first part that has an option; None where none has it."""
    parts = (field for field in dataclasses.fields(kind) if "part" in field.metadata)
    return next((part.name for part in parts if name in options_of(part.metadata["part"])), None)


def _parts(options):
    return [
        getattr(options, field.name)
        for field in dataclasses.fields(options)
        if "part" in field.metadata
    ]


class OptimizerOptions(Options):
    """Options of the optimizer, and of averaged weights."""

    learning_rate: float = option(
        3e-3, POSITIVE, "Learning rate at the end of warm-up.", search=RATE
    )
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
        search=DECAY,
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
    ema: float | None = option(
        None,
        Number(0, 1, min_open=True, max_open=True),
        "Decay rate of a moving average of the weights, such as 0.999; the average is evaluated "
        "and kept. Default: no average.",
    )
    average_checkpoints: int = option(
        1, at_least(1), "Last checkpoints whose mean is evaluated and kept."
    )

    def problems(self, command: Options) -> Iterable[str]:
        if self.schedule == "noam" and not hasattr(command, "hidden_dim"):
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
        if self.warmup_share is not None and command.is_given("warmup_steps"):
            yield "--warmup-share and --warmup-steps are two lengths of one warm-up; choose one."
        if self.ema is not None and self.average_checkpoints > 1:
            yield "--ema and --average-checkpoints are two averages; choose one."
        if self.ema is not None and self.optimizer == "keras-adam":
            yield "--ema is for the optimizers of seqkeras; choose --optimizer adam."
        if self.gradient_accumulation > 1 and self.optimizer == "keras-adam":
            yield "--gradient-accumulation is for the optimizers of seqkeras; choose adam."


class LookOptions(Options):
    """When a training saves, is evaluated and ends, and which model it keeps."""

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
    tensorboard: bool = option(True, bool, "Write events for TensorBoard.", decides=False)

    def problems(self, command: Options) -> Iterable[str]:
        if self.tensorboard and importlib.util.find_spec("tensorboard") is None:
            yield (
                "--tensorboard needs the package tensorboard, which is not installed: pip install "
                "tensorboard, or choose --tensorboard false."
            )


TASKS: dict = {}
"""The tasks of `seqkeras train`: name -> the class of its options."""
INSTEAD_OF = {"warmup_share": "warmup_steps"}  # two options for one thing


class FitOptions(Options):
    """Options of every training; a task's options come after these.

        class TreesOptions(FitOptions, task="trees"):
            ...  # the docstring is the help of the command, its first line stands in the list

    Attributes:
        task: name of the task and of its command, by which `TASKS` has the subclass.

    Example:
        >>> from seqkeras.training.tasks import TASKS
        >>> options = TASKS["classification"](file="reviews.csv", passes=3)
        >>> options.task, options.passes, options.seed
        ('classification', 3, 0)
    """

    task: ClassVar[str]

    seed: int = option(
        0,
        click.IntRange(0, 2**32 - 1),
        "Seed of the initial weights, of the order of examples, and of random draws.",
    )
    batch_size: int = option(128, at_least(1), "Examples in a batch.", search=BATCH)
    batch_tokens: int | None = option(
        None,
        at_least(1),
        "Tokens in a batch, padding included, instead of --batch-size. Choose it when lengths "
        "vary much.",
    )
    optimization: OptimizerOptions = part(OptimizerOptions)
    passes: int = option(3, at_least(1), "Passes over the training examples (epochs).")
    max_steps: int | None = option(None, at_least(1), "Training steps, instead of --passes.")
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
    looking: LookOptions = part(LookOptions)
    strategy: str = option(
        "auto",
        click.Choice(STRATEGIES),
        "Devices to train on; docs/distributed.md describes each strategy.",
        False,
    )

    # Names of the options that --help shows first; `seqkeras.training.commands` has the usual
    # names.
    USUAL = ()
    # What --size decides, size -> name of an option -> default; the most examples of a file for
    # which --size auto is small; and whether an empty line ends an example.
    SIZES: ClassVar[dict[str, dict[str, Any]]] = {}
    SMALL_UP_TO = 0
    IN_BLOCKS = False

    def __init_subclass__(cls, task: str | None = None) -> None:
        super().__init_subclass__()
        if task is not None:
            cls.task = task
            TASKS[task] = cls

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Return the options with the defaults that follow from given ones, as the command line
        has them: `DEFAULTS_WITH`, and the defaults of a size in `SIZES`.

            TranslationOptions.of(file="pairs.tsv", hidden_dim=64)

        Args:
            given: name -> value of options; these stay as they are.
        """
        options, follows = cls(**given), {}
        for because, defaults in cls.defaults_with().items():
            if getattr(options, because) is not None:
                follows |= defaults
        if cls.SIZES:
            size = options.sizing.of_file(options)
            given = given | {"size": size}
            follows |= cls.SIZES.get(size, {})
        fixed = {*given, *(name for name, other in INSTEAD_OF.items() if other in given)}
        return cls(**{name: value for name, value in follows.items() if name not in fixed} | given)

    def make(self) -> "Task":
        """Return the `seqkeras.training.task.Task` of these options; Keras is imported here.

        Raises:
            NotImplementedError: unless the options of a task write it.
        """
        raise NotImplementedError

    def require_files(self) -> None:
        """Refuse files whose names or first lines show that they can not be read; the command calls
        it before Keras is loaded.

        Raises:
            DataError: if a file is refused.
        """
        return None

    def text_files(self) -> list[str]:
        """Return the training files of a task with `SIZES`; none where inputs are no texts."""
        return []

    def files_within(self) -> dict[str, list[Path | str]]:
        """Return name of a file of the user's -> paths of the files that it names; a run continues
        only while their content stays the same, too."""
        return {}

"""A dataclass is the command line: `--batch-size 64` sets its field `batch_size`.

The same names make a `--config` file, in TOML or as a JSON object, and the command line goes before
the file.
"""

import dataclasses
import difflib
import functools
import importlib.util
import inspect
import json
import math
import tomllib
from pathlib import Path

import click
from click.core import ParameterSource

from seqkeras import files
from seqkeras.runs import MODEL, RECORD
from serving.manifest.fields import parse_fields

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


class DataFile(click.ParamType):
    """The path of a file of the user's; a run continues only while its content stays the same."""

    name = "file"

    def convert(self, value, parameter, context):
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


def at_least(minimum):
    return click.IntRange(min=minimum, max=MOST)


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
INSTEAD_OF = {"warmup_share": "warmup_steps"}  # two options for one thing


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
    looks: int = option(5, at_least(1), "Looks at the validation examples, evenly spread.")
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
        if self.warmup_share is not None and self.warmup_steps != type(self).warmup_steps:
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


def command(name, options_class):
    """The click command of a task, which returns its name, options, folder and overwrite."""
    parameters = [
        click.Option(
            ["--out"],
            type=click.Path(file_okay=False, path_type=Path),
            required=True,
            help="Run folder to make, or to go on with.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace the run that is in the folder."),
        click.Option(
            ["--config"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            callback=functools.partial(_read_config, options_class),
            is_eager=True,
            expose_value=False,
            help="Options in a TOML file, or in JSON as options.json of a run.",
        ),
        *(parameter(field, options_class) for field in dataclasses.fields(options_class)),
    ]

    def callback(out, overwrite, **values):
        options = options_class(**values | _defaults_with(options_class, values))
        for problem in options.fit_problems():
            raise click.UsageError(problem)
        options.check()
        return name, options, out, overwrite

    text = inspect.getdoc(options_class)
    return click.Command(
        name,
        params=parameters,
        callback=callback,
        help=text,
        short_help=text.partition("\n")[0],
    )


def _defaults_with(options_class, values):
    """Name -> default of the options that were not given, where it follows from one that was."""
    given = click.get_current_context().get_parameter_source
    return {
        name: default
        for because, defaults in options_class.DEFAULTS_WITH.items()
        if values[because] is not None
        for name, default in defaults.items()
        if {given(name), given(INSTEAD_OF.get(name, name))} == {ParameterSource.DEFAULT}
    }


def parse_options(name, options_class, arguments, values):
    """A task's options, of a command that reads a user's files but trains nothing.

    Args:
        name: of the command, for errors.
        options_class: dataclass of the options; what names a file or a run of the training is None.
        arguments: list of the command line's `--option value`.
        values: name -> value of those that are not among the arguments; others are defaults.

    Raises:
        click.UsageError: if they are none of the task's.
    """
    fields = _without_paths(options_class)
    known = {field.name: values[field.name] for field in fields if field.name in values}
    reader = click.Command(name, params=[parameter(field, options_class) for field in fields])
    context = reader.make_context(f"python -m training {name}", [*arguments], default_map=known)
    return options_class(**context.params)


def evaluation_options(options):
    """Name -> value of the options that say how files are read and answers scored: of all but those
    of `FitOptions` and those that name files or folders."""
    of_training = {field.name for field in dataclasses.fields(FitOptions)}
    return {
        field.name: getattr(options, field.name)
        for field in _without_paths(type(options))
        if field.name not in of_training
    }


def _without_paths(options_class):
    """The fields of options that name no file and no folder."""
    return [
        field
        for field in dataclasses.fields(options_class)
        if not isinstance(field.metadata["type"], DataFile | RunFolder | click.Path)
    ]


def parameter(field, options_class):
    if field.metadata.get("is_argument"):
        several = {"nargs": -1, "required": True} if field.metadata["several"] else {}
        return click.Argument([field.name], type=field.metadata["type"], **several)
    others = [
        f"with --{because.replace('_', '-')} {defaults[field.name]}"
        for because, defaults in options_class.DEFAULTS_WITH.items()
        if field.name in defaults
    ]
    shown = not isinstance(field.default, tuple)
    return click.Option(
        ["--" + field.name.replace("_", "-")],
        type=field.metadata["type"],
        default=field.default,
        show_default=", ".join([str(field.default), *others]) if others else shown,
        help=field.metadata["help"],
    )


def _read_config(options_class, context, parameter, path):
    if path is None:
        return
    try:
        values = config_values(path)
        task = values.pop("task", context.command.name)
        if task != context.command.name:
            raise ValueError(f"{path} holds the options of another task, {task!s:.40}.")
        values.pop("sha256", None)  # of a run's data
        if problems := _problems_of_config(options_class, values):
            raise ValueError(f"{path}: {'; '.join(problems)}.")
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param=parameter) from None
    context.default_map = values


def _problems_of_config(options_class, values):
    """All reasons against the names and the types of options; the names that there are come last,
    and only where an unknown name is near none of them."""
    known = [field.name for field in dataclasses.fields(options_class)]
    problems, named, is_strange = [], {}, False
    for name, value in values.items():
        written = name.replace("-", "_")
        if written in known:
            named[written] = value
            if name != written:
                problems.append(f"{name} is written {written} here")
        elif near := difflib.get_close_matches(written, known, n=1):
            problems.append(f"{name} is unknown, did you mean {near[0]}?")
        else:
            problems.append(f"{name} is unknown")
            is_strange = True
    parse_fields(options_class, named, "", problems)
    return problems + ([f"known: {', '.join(known)}"] if is_strange else [])


def config_values(path):
    """The dictionary of a TOML or JSON file; dates and times of TOML are strings.

    Raises:
        ValueError: if it is neither.
    """
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        if kind == "TOML":
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            return json.loads(json.dumps(content, default=str))
        content = files.read_json(path)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is not a {kind} file: {error}.") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object of options.")
    return content

"""A dataclass of options is a command line.

The same names make a `--config` file, in TOML or as a JSON object, and the command line goes before
the file.
"""

import dataclasses
import difflib
import functools
import inspect
import itertools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from seqkeras import files
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.training.options import (
    TASKS,
    DataFile,
    FitOptions,
    RunFolder,
    options_of,
    shown,
    values_of,
)

SECTIONS = ("Run", "Options of the task", "Options of every training")
OF_RUN = ("--out", "--overwrite", "--config", "--help", "--help-all")
USUAL = (  # options that --help shows of a task, behind the USUAL of its options, ten together
    "validation",
    "pretrained",
    "encoder",
    "model",
    "passes",
    "batch_size",
    "learning_rate",
    "max_length",
    "seed",
)
MOST_SHOWN = 10
SHOWS_ALL = "seqkeras.help_all"  # whether a context shows every option
NO_OPTIONS = ("sha256", "scores")  # of a run's data; of a recipe


class TaskOption(click.Option):
    """An option whose help says whether it must be given; `Options.all_problems` refuses its lack.

    Args:
        must_be_given: whether the task needs it.
        arguments: what `click.Option` takes.
    """

    def __init__(self, *arguments: Any, must_be_given: bool, **named: Any):
        super().__init__(*arguments, **named)
        self.must_be_given = must_be_given

    def get_help_extra(self, context: click.Context) -> Any:
        extra = super().get_help_extra(context)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default  # click sets it in brackets
        if self.must_be_given:
            extra["required"] = "required"
        return extra


class TaskCommand(click.Command):
    """A command whose help shows the usual options of a task; --help-all shows every option.

    Args:
        usual: names of the usual options.
        arguments: what `click.Command` takes.
    """

    def __init__(self, *arguments: Any, usual: Sequence[str], **named: Any):
        super().__init__(*arguments, **named)
        self.usual = usual

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        try:
            self._require_values(arguments)
            return super().parse_args(context, arguments)
        except click.UsageError as error:
            error.ctx = error.ctx or context  # click leaves it out for an option without its value
            if isinstance(error, click.NoSuchOption):
                _say_whose(error)
            raise

    def _require_values(self, arguments):
        """Refuse an option whose value would be the next option, as an empty variable leaves it."""
        options = [option for option in self.params if isinstance(option, click.Option)]
        takes_value = {name: not option.is_flag for option in options for name in option.opts}
        for name, value in itertools.pairwise(arguments):
            if takes_value.get(name) and value in takes_value:
                raise click.UsageError(
                    f"{name} has no value: {value} stands in its place. If it is a variable of the "
                    "shell, that is empty."
                )

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        common = options_of(FitOptions)
        sections = {title: [] for title in SECTIONS}
        shows_all = context.meta.get(SHOWS_ALL, False)
        for parameter in self.get_params(context):
            if isinstance(parameter, click.Argument):  # which has a section of its own
                continue
            of_run = parameter.opts[0] in OF_RUN
            if shows_all or of_run or parameter.name in self.usual:
                section = 0 if of_run else 2 if parameter.name in common else 1
                sections[SECTIONS[section]].append(parameter.get_help_record(context))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _say_whose(error):
    """Say which tasks have an option that one has not."""
    name = error.option_name.removeprefix("--").replace("-", "_")
    if tasks := [task for task, options in sorted(TASKS.items()) if name in options_of(options)]:
        have = "have" if len(tasks) > 1 else "has"
        error.message = (
            f"No such option {error.option_name!r} here; {', '.join(tasks)} {have} it; "
            "leave it out."
        )
        error.possibilities = None


def _show_all(context, parameter, value):
    if value:
        context.meta[SHOWS_ALL] = True
        click.echo(context.get_help())
        context.exit()


def usual_options(options_class: type[FitOptions]) -> list[str]:
    """Return the names of the options that --help shows: the class's REQUIRED and USUAL, then
    ours."""
    ordered = dict.fromkeys((*options_class.REQUIRED, *options_class.USUAL, *USUAL))
    return [name for name in ordered if name in options_of(options_class)][:MOST_SHOWN]


def command(name: str, options_class: type[FitOptions]) -> click.Command:
    """Return the click command of a task, which returns its options, folder and overwrite."""
    fields = options_of(options_class).values()
    parameters = [
        click.Option(
            ["--out"],
            type=click.Path(file_okay=False, path_type=Path),
            required=True,
            help="Run folder to make, or to continue.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace the run in the folder of --out."),
        click.Option(
            ["--config"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            callback=functools.partial(_read_config, options_class),
            is_eager=True,
            expose_value=False,
            help="File of options: TOML, or JSON such as the options.json of a run.",
        ),
        click.Option(
            ["--help-all"],
            is_flag=True,
            callback=_show_all,
            is_eager=True,
            expose_value=False,
            help=f"Show all {len(fields)} options and exit.",
        ),
        *(parameter(field, options_class) for field in fields),
    ]

    def callback(out, overwrite, **values):
        options = options_class.of(**_given(values))
        options.check()
        options.require_files()
        return options, out, overwrite

    # Click keeps the lines of a paragraph that begins with \b: those of the indented ones.
    text = re.sub(r"\n\n(?= )", "\n\n\b\n", inspect.getdoc(options_class) or "")
    return TaskCommand(
        name,
        params=parameters,
        callback=callback,
        help=text,
        short_help=text.partition("\n")[0],
        usual=usual_options(options_class),
    )


def _given(values):
    """Return the options that the command line or --config gives, of all."""
    source_of = click.get_current_context().get_parameter_source
    return {
        name: value for name, value in values.items() if source_of(name) != ParameterSource.DEFAULT
    }


def parse_options(
    name: str, options_class: type[FitOptions], arguments: Sequence[str], values: Mapping[str, Any]
) -> FitOptions:
    """Return a task's options, of a command that reads a user's files but trains nothing.

    Args:
        name: name of the command, for errors.
        options_class: dataclass of the options; what names a file or a run of the training is None.
        arguments: list of the command line's `--option value`.
        values: name -> value of those that are not among the arguments; others are defaults.

    Raises:
        click.UsageError: if they are none of the task's.
    """
    fields = _without_paths(options_class)
    known = {field.name: values[field.name] for field in fields if field.name in values}
    reader = click.Command(name, params=[parameter(field, options_class) for field in fields])
    context = reader.make_context(f"seqkeras train {name}", [*arguments], default_map=known)
    return options_class(**context.params)


def evaluation_options(options: FitOptions) -> dict[str, Any]:
    """Return name -> value of the options that say how files are read and answers scored.

    They are all options except the options of `FitOptions` and the names of files and folders.
    """
    read = {field.name for field in _without_paths(type(options))} - options_of(FitOptions).keys()
    return {name: value for name, value in values_of(options).items() if name in read}


def _without_paths(options_class):
    """Return the fields of options that name no file and no folder."""
    return [
        field
        for field in options_of(options_class).values()
        if not isinstance(field.metadata["type"], DataFile | RunFolder | click.Path)
    ]


def parameter(field: dataclasses.Field, options_class: type[FitOptions]) -> click.Parameter:
    if field.metadata.get("is_argument"):
        several: dict[str, Any] = (
            {"nargs": -1, "required": True} if field.metadata["several"] else {}
        )
        help = field.metadata["help"]
        return click.Argument([field.name], type=field.metadata["type"], help=help, **several)
    default, others = field.default, []
    for because, defaults in options_class.defaults_with().items():
        other = defaults.get(field.name, default)
        if because in options_class.REQUIRED:
            default = other
        elif other != default:
            others.append(f"with {shown(because)} {other}")
    others += [
        f"with --size {size} {defaults[field.name]}"
        for size, defaults in options_class.SIZES.items()
        if field.name in defaults
    ]
    help = field.metadata["help"]
    if default != field.default:
        help = help.partition(" Default: ")[0]
    shows = [str(default), *others] if others or default != field.default else []
    return TaskOption(
        [shown(field.name)],
        type=field.metadata["type"],
        default=field.default,
        show_default=", ".join(shows) or not isinstance(default, tuple),
        help=help,
        must_be_given=field.name in options_class.REQUIRED,
    )


def _read_config(options_class, context, parameter, path):
    if path is None:
        return
    try:
        values = config_values(path)
        task = values.pop("task", context.command.name)
        if task != context.command.name:
            raise ValueError(f"{path} holds the options of another task, {task!s:.40}.")
        for name in NO_OPTIONS:
            values.pop(name, None)
        if problems := _problems_of_config(options_class, values):
            raise ValueError(f"{path}: {'; '.join(problems)}.")
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param=parameter) from None
    context.default_map = values


def _problems_of_config(options_class, values):
    """Return all reasons against the names and the types of options; the known names come last, and
    only where an unknown name is near none of them."""
    known = options_of(options_class)
    problems, named, is_strange = [], {}, False
    for name, value in values.items():
        written = name.replace("-", "_")
        if written in known:
            named[written] = value
            if name != written:
                problems.append(f"{name} is written {written} here")
        elif near := difflib.get_close_matches(written, known, n=1):
            problems.append(f"{name} is unknown (did you mean {near[0]}?)")
        else:
            problems.append(f"{name} is unknown")
            is_strange = True
    types = [(name, field.type, None) for name, field in known.items()]
    parse_fields(dataclasses.make_dataclass(options_class.__name__, types), named, "", problems)
    return problems + ([f"known: {', '.join(known)}"] if is_strange else [])


def config_values(path: Path | str) -> dict[str, Any]:
    """Return the dictionary of a TOML or JSON file; dates and times of TOML are strings.

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

"""The pages of docs/reference/commands, made of the commands' own options: `make reference`.

python docs/theme/commands.py
"""

import argparse
import contextlib
import inspect
import itertools
import re
from pathlib import Path
from unittest import mock

import click

from seqkeras.__main__ import SERVING
from seqkeras.analysis.__main__ import FIGURES
from seqkeras.analysis.__main__ import main as figure
from seqkeras.export.__main__ import main as export
from seqkeras.serving.__main__ import main as serving
from seqkeras.serving.triton import main as triton
from seqkeras.training.commands import OF_RUN, SECTIONS, command
from seqkeras.training.describe import DESCRIBE, describe_command
from seqkeras.training.evaluate import EVALUATE, evaluate_command
from seqkeras.training.options import FitOptions, options_of
from seqkeras.training.tasks import TASKS
from seqkeras.training.tuning.command import TUNE, tune_command

FOLDER = Path(__file__).resolve().parents[1] / "reference/commands"
COLUMNS = ("option", "values", "default", "what it is")
MUST = "must be given"
NOTE = "Made from the command's options by `make reference`."
SHOWN_TASK = "classification"  # whose command stands for all in the page of tune


def pages():
    """Return the pages: name of a file -> its text."""
    made = {f"train-{name}.md": _task_page(name) for name in sorted(TASKS)}
    made[f"train-{TUNE}.md"] = _tune_page()
    for name, of_click in ((EVALUATE, evaluate_command()), (DESCRIBE, describe_command())):
        made[f"train-{name}.md"] = _click_page(f"seqkeras train {name}", of_click)
    made["export.md"] = _parser_page("seqkeras export", export, [])
    made |= {f"{name}.md": _parser_page(f"seqkeras {name}", serving, [name]) for name in SERVING}
    made["figure.md"] = _figure_page()
    made["serving.triton.md"] = _parser_page("python -m seqkeras.serving.triton", triton, [])
    return {"README.md": _index(made)} | made


def write(folder):
    """Write the pages into a folder, and remove others."""
    made = pages()
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


def _index(made):
    rows = []
    for name, text in made.items():
        title, summary, _ = text.split("\n\n", 2)
        rows.append(f"| [{title.removeprefix('# ')}]({name}) | {' '.join(summary.split())} |")
    return (
        "# Commands\n\nEvery command, and all that it can be told. `--help` shows the usual "
        "options, and `seqkeras train TASK --help-all` all options.\n\n| command | what it does |\n"
        f"|---|---|\n{chr(10).join(rows)}\n\n{NOTE}\n"
    )


def _page(title, about, *sections):
    return "\n\n".join([f"# {title}", about, *(part for part in sections if part), NOTE]) + "\n"


def _task_page(name):
    made = command(name, TASKS[name])
    context = click.Context(made, info_name=name)
    common, rows = options_of(FitOptions), {title: [] for title in SECTIONS}
    files = []
    for parameter in sorted(made.params, key=lambda parameter: parameter.name not in made.usual):
        if isinstance(parameter, click.Argument):
            files += _click_rows([parameter], context)
            continue
        section = 0 if parameter.opts[0] in OF_RUN else 2 if parameter.name in common else 1
        rows[SECTIONS[section]] += _click_rows([parameter], context)
    usage = _click_usage(f"seqkeras train {name}", made, context)
    usual = f"The options of each table begin with those that `seqkeras train {name} --help` shows."
    tables = [_table(title, cells) for title, cells in {"Files": files, **rows}.items()]
    return _page(f"seqkeras train {name}", _told(made.help), usage, usual, *tables)


def _tune_page():
    group = tune_command(TASKS)
    made = group.commands[SHOWN_TASK]
    context = click.Context(made, info_name=TUNE)
    of_task = {parameter.name for parameter in command(SHOWN_TASK, TASKS[SHOWN_TASK]).params}
    rows = _click_rows(
        [parameter for parameter in made.params if parameter.name not in of_task], context
    )
    links = ", ".join(f"[{name}](train-{name}.md)" for name in sorted(TASKS))
    return _page(
        f"seqkeras train {TUNE}",
        _told(group.help),
        _click_usage(f"seqkeras train {TUNE} TASK", made, context),
        f"It takes the options of the task: {links}; and its own.",
        _table("Options of the search", rows),
    )


def _click_page(title, made):
    context = click.Context(made, info_name=made.name)
    rows = _click_rows(made.params, context)
    usage = _click_usage(title, made, context)
    return _page(title, _told(made.help), usage, _table("Options", rows))


def _usage(title, arguments, required):
    """Return how a command is called: what must be given stands before the options."""
    return f"```\n{' '.join([title, *arguments, *required, '[OPTIONS]'])}\n```"


def _click_usage(title, made, context):
    arguments = [
        parameter.make_metavar(context).replace("...", " ...")
        for parameter in made.params
        if isinstance(parameter, click.Argument)
    ]
    required = [
        f"{parameter.opts[0]} {parameter.make_metavar(context)}"
        for parameter in made.params
        if isinstance(parameter, click.Option) and "required" in parameter.get_help_extra(context)
    ]
    return _usage(title, arguments, required)


def _click_rows(parameters, context):
    """Return rows of options, and of arguments that have a help text."""
    return [
        _click_row(parameter, context)
        for parameter in parameters
        if isinstance(parameter, click.Option) or getattr(parameter, "help", None)
    ]


def _click_row(parameter, context):
    if isinstance(parameter, click.Argument):
        return _row(parameter.make_metavar(context), "", "", parameter.help)
    extra = parameter.get_help_extra(context)
    values = ""
    if not parameter.is_flag:
        kind = parameter.type
        if isinstance(kind, click.Choice):
            values = ", ".join(map(str, kind.choices))
        else:
            values = extra.get("range") or kind.name.replace(" range", "")
    default = MUST if "required" in extra else str(extra.get("default", ""))
    return _row(
        ", ".join(parameter.opts + parameter.secondary_opts), values, default, parameter.help
    )


def _parser_page(title, main, arguments):
    parser = _parser_of(main, arguments)
    positional = [
        " ".join(parser._get_formatter()._format_args(action, _name_of(action)).split())
        for action in parser._actions
        if not action.option_strings
    ]
    required = [
        f"{action.option_strings[0]} {action.metavar}"
        for action in parser._actions
        if action.option_strings and action.required
    ]
    usage = _usage(title, positional, required)
    return _page(title, _told(parser.description), usage, _table("Options", _parser_rows(parser)))


def _figure_page():
    sections = []
    for name, about in FIGURES.items():
        parser = _parser_of(figure, [name])
        sections.append(_table(name, _parser_rows(parser), about=_plain(about.summary)))
    return _page(
        "seqkeras figure",
        "Draw a figure of [the gallery](../../gallery.md).",
        "```\nseqkeras figure NAME --out FILE.png [OPTIONS]\n```",
        *sections,
    )


def _parser_of(main, arguments):
    """Return the argparse parser that answers --help."""
    parsers = []
    with (
        mock.patch.object(
            argparse.ArgumentParser, "print_help", lambda parser: parsers.append(parser)
        ),
        contextlib.suppress(SystemExit),
    ):
        main([*arguments, "--help"])
    return parsers[0]


def _parser_rows(parser):
    return [_argparse_row(action) for action in parser._actions if action.dest != "help"]


def _argparse_row(action):
    name, values = _name_of(action), ""
    if action.option_strings and action.nargs != 0:
        values = action.metavar or action.dest.upper()
    if action.choices:
        values = ", ".join(map(str, action.choices))
    told = " ".join((action.help or "").split())
    default = action.default
    hidden = default in (None, False, argparse.SUPPRESS) or default == [] or default == ()
    if action.required and action.option_strings:
        default = MUST
    elif hidden or action.nargs == 0 or "Default:" in told:
        default = ""
    if "%(" in told:
        told = told % {"default": action.default, "prog": ""}
    return _row(name, values, str(default), told)


def _name_of(action):
    return ", ".join(action.option_strings) or str(action.metavar or action.dest).upper()


def _table(title, rows, about=""):
    """Return a section with a table, without the columns in which no row has anything."""
    if not rows:
        return ""
    kept = [column for column in range(len(COLUMNS)) if any(row[column] for row in rows)]
    shown = [[row[column] for column in kept] for row in [COLUMNS, ["---"] * len(COLUMNS), *rows]]
    lines = [re.sub(r"\|  \|", "| |", f"| {' | '.join(cells)} |") for cells in shown]
    lines[1] = lines[1].replace(" ", "")
    return "\n\n".join(part for part in (f"## {title}", about, "\n".join(lines)) if part)


def _row(name, values, default, told):
    """Return the cells of a row; a default that the text ends with moves into its column."""
    told, default = told or "", default.removeprefix("(").removesuffix(")")
    usual, _, otherwise = default.partition(", ")
    last = re.search(r"\s*Default: ([^.]*(?:\.\S[^.]*)*)\.?$", told)
    if last and usual in ("", "None"):
        told, default = told[: last.start()], "; ".join(filter(None, (last[1], otherwise)))
    elif usual == "None":
        default = otherwise
    cells = f"`{name}`", values and f"`{values}`", _plain(default), _plain(told)
    return [re.sub(r"\|", r"\\|", cell) for cell in cells]


def _plain(text):
    """Return text whose special characters are none to Markdown; options are code."""
    escaped = re.sub(r"([*<\[])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", escaped)


def _told(text):
    """Return a help text as Markdown: what click must not wrap is a block of code."""
    blocks = itertools.groupby(
        inspect.cleandoc(text or "").split("\n\n"), lambda block: block.startswith(("\b\n", "    "))
    )
    told = []
    for is_code, group in blocks:
        lines = "\n\n".join(block.removeprefix("\b\n") for block in group)
        told.append(f"```\n{inspect.cleandoc(lines)}\n```" if is_code else _plain(lines))
    return "\n\n".join(told)


if __name__ == "__main__":
    write(FOLDER)

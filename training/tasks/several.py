"""`seqkeras train several`: its options, and what it is made of."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import click

from seqkeras.training.commands import config_values, parameter
from seqkeras.training.options import (
    POSITIVE,
    DataFile,
    FitOptions,
    Number,
    Options,
    argument,
    option,
    options_of,
    part,
)
from seqkeras.training.options.baselines import BaselineOptions
from seqkeras.training.options.distillation import DistillationOptions
from seqkeras.training.options.frames import FrameOptions
from seqkeras.training.options.members import MemberOptions
from seqkeras.training.options.none_of_these import NoneOfTheseOptions
from seqkeras.training.options.pretrained import PooledOptions
from seqkeras.training.options.sizes import SizeOptions
from seqkeras.training.options.spaces import DROPOUT
from seqkeras.training.options.subwords import SubwordOptions
from seqkeras.training.task import Task
from seqkeras.training.tasks.classification import ClassificationOptions
from seqkeras.training.tasks.regression import RegressionOptions
from seqkeras.training.tasks.tagging import TaggingOptions

KINDS = {
    "classification": ClassificationOptions,
    "regression": RegressionOptions,
    "tagging": TaggingOptions,
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
OF_TEACHER = ("unlabelled", "augment")


class Table(NamedTuple):
    """A table of the file: the task's kind, its options, and the weight of its loss."""

    task: str
    options: Any
    weight: float


class SeveralOptions(FitOptions, task="several"):
    """Train several tasks at once over one encoder: classes or numbers of texts, tags of words.

    Your file names the tasks, a table each, in TOML. A table may also hold
    options of the task, with _ for -, and the weight of its loss:

        [sentiment]
        task = "classification"
        file = "reviews.csv"

        [names]
        task = "tagging"
        file = "names.conll"
        validation = "more.conll"
        weight = 0.5

    The encoder of --pretrained has a head for each task. The run holds a run of each task for
    export: RUN/tasks/sentiment, RUN/tasks/names.
    """

    file: str = argument(DataFile(), "File that names the tasks: .toml or .json.")
    tuning: PooledOptions = part(PooledOptions)
    beside: BaselineOptions = part(BaselineOptions)
    alpha: float = option(
        0.7,
        Number(0, 1),
        "Exponent of the number of a task's examples that gives its share of the batches; 0: "
        "equal shares.",
    )
    batches: str = option(
        "one",
        click.Choice(("one", "mixed")),
        "Composition of a batch: rows of one task, or rows of all tasks (mixed).",
    )
    dropout: float = option(
        0.1, Number(0, 1, max_open=True), "Dropout rate before the logits.", search=DROPOUT
    )

    REQUIRED: ClassVar = {"pretrained": "the folder of the tasks' encoder"}
    USUAL = ("alpha", "batches")

    def make(self) -> Task:
        from seqkeras.training.parts.several import Several

        return Several(self)

    def problems(self, command: Options) -> Iterable[str]:
        if self.gradient_accumulation > 1:
            yield (
                "--gradient-accumulation: batches have examples of different tasks; choose a "
                "larger --batch-size."
            )
        if self.batches == "mixed" and self.is_given("alpha"):
            yield "--alpha: draws the task of a batch; --batches mixed has all."
        for name, table in self.tables().items():
            for problem in table.options.all_problems(table.options):
                yield f"{self.file}: {name}: {problem}"

    def tables(self) -> dict[str, Table]:
        """Return a dictionary: name of a task -> its `Table`.

        Raises:
            click.UsageError: if the file names no tasks.
        """
        try:
            content = config_values(Path(self.file))
        except (OSError, ValueError) as error:
            raise click.UsageError(str(error)) from None
        if len(content) < 2:
            raise click.UsageError(
                f"{self.file}: must hold a table for each of two tasks at least; found "
                f"{', '.join(content) or 'none'}."
            )
        return {name: self._table(name, values) for name, values in content.items()}

    def _table(self, name, values):
        where = f"{self.file}: {name}"
        if not isinstance(values, dict) or not NAME.fullmatch(name):
            raise click.UsageError(
                f"{where:.200}: must be a table, and its name a letter and then letters, digits, "
                "_ or -."
            )
        values = dict(values)
        task, weight = values.pop("task", None), values.pop("weight", 1.0)
        if task not in KINDS:
            raise click.UsageError(
                f"{where}: task must be one of {', '.join(KINDS)}; received {task!r}."
            )
        kind = KINDS[task]
        shared, task_options = options_of(SeveralOptions), _own_options(kind)
        for given in values:
            if given not in task_options:
                known = f"is unknown; known are {', '.join(task_options)}"
                reason = "is an option of the command, for all tasks" if given in shared else known
                raise click.UsageError(f"{where}: {given!r:.60} {reason}.")
        if "file" not in values:
            raise click.UsageError(f"{where}: file is missing.")
        reader = click.Command(
            name, params=[parameter(field, kind) for field in task_options.values()]
        )
        try:
            weight = POSITIVE.convert(weight, None, None)
        except click.UsageError as error:
            raise click.UsageError(f"{where}: weight: {error.message}") from None
        try:
            given = reader.make_context(name, [], default_map=values).params
        except click.UsageError as error:
            raise click.UsageError(f"{where}: {error.format_message()}") from None
        common = {field: getattr(self, field) for field in shared if field in options_of(kind)}
        return Table(task, kind(**{**common, "best_by": None, **given}), weight)

    def files_within(self) -> dict[str, list[Path | str]]:
        """Return the files that the tables name."""
        files: list[Path | str] = []
        for table in self.tables().values():
            paths = (table.options.file, table.options.validation)
            files += [Path(path) for path in paths if path is not None]
        return {self.file: files}


def _own_options(kind):
    """Return a dictionary: name -> field of the options that a table may have."""
    of_others = (
        FitOptions,
        PooledOptions,
        DistillationOptions,
        FrameOptions,
        BaselineOptions,
        MemberOptions,
        NoneOfTheseOptions,
        SizeOptions,
        SubwordOptions,
    )
    left_out = {name for other in of_others for name in options_of(other)} - {"dropout"}
    left_out |= {*kind.OF_SCRATCH, *OF_TEACHER}
    return {name: field for name, field in options_of(kind).items() if name not in left_out}

"""Options of tasks that learn from several corpora."""

from collections.abc import Iterable
from typing import Any

import click

from seqkeras.training.options import DataFile, Options, option


class DataFiles(DataFile):
    """Paths of files of the user's with commas between them, as a tuple."""

    name = "files"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        paths = value.split(",") if isinstance(value, str) else value
        return tuple(super(DataFiles, self).convert(path, parameter, context) for path in paths)


class Weights(click.ParamType):
    """Positive numbers with commas between them, as a tuple."""

    name = "weights"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        try:
            weights = tuple(map(float, value.split(",") if isinstance(value, str) else value))
        except (TypeError, ValueError):
            weights = (0.0,)
        if not all(0 < weight < float("inf") for weight in weights):
            self.fail(f"needs positive numbers with commas between them; received {value!r}.")
        return weights


class CorporaOptions(Options):
    """Further corpora of training, and how much of each."""

    also: tuple = option((), DataFiles(), "Further training corpora: files, separated by commas.")
    weights: tuple = option(
        (),
        Weights(),
        "Relative frequency of FILE and of each corpus of --also among batches, such as 3,1. "
        "Default: equal.",
    )

    def mixture(self) -> tuple[float, ...]:
        """Return the weight of FILE, and of each further corpus."""
        return self.weights or (1.0,) * (1 + len(self.also))

    def problems(self, command: Options) -> Iterable[str]:
        if self.weights and len(self.weights) != 1 + len(self.also):
            yield (
                f"--weights: expected {1 + len(self.also)}, for FILE and each file of --also; "
                f"received {len(self.weights)}."
            )

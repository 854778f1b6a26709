"""Options of classifiers that tell what has none of their labels."""

from collections.abc import Iterable

from seqkeras.training.options import Number, Options, option, shown


class NoneOfTheseOptions(Options):
    """What is answered None."""

    none_of_these: bool = option(
        False,
        bool,
        "Answer null for a text that is far from all training texts. Held-out rows choose how far.",
    )
    false_alarms: float = option(
        0.05,
        Number(0, 0.5, min_open=True, max_open=True),
        "Share of texts with a label that --none-of-these may answer by null.",
    )
    none_label: str | None = option(
        None,
        str,
        "Label of rows that have none of the labels: --none-of-these learns from them, too.",
    )

    def problems(self, command: Options) -> Iterable[str]:
        for name in ("false_alarms", "none_label"):
            if command.is_given(name) and not self.none_of_these:
                yield f"{shown(name)} is for --none-of-these."
        if self.none_label is not None and command.teacher is not None:
            yield "--none-label: a teacher has no such rows; leave it or --teacher out."

"""Options of columns whose numbers are written for people, as 1,250.5, 12 % or 204.93亿."""

from collections.abc import Iterator, Sequence

from seqkeras.training.options import Names, Options, option


class DecimalOptions(Options):
    """Which decimal sign the numbers of a column have."""

    decimal_point: tuple = option(
        (),
        Names(),
        "Columns of numbers written for people with a decimal point, such as 1,250.5, 12 % (read "
        "as 0.12) or 204.93亿.",
    )
    decimal_comma: tuple = option(
        (),
        Names(),
        "Columns of numbers written for people with a decimal comma, such as 1.250,5 or 12,5 %.",
    )

    def signs(self) -> dict[str, str]:
        """Return a dictionary: name of a column -> its decimal sign."""
        return {
            **dict.fromkeys(self.decimal_point, "."),
            **dict.fromkeys(self.decimal_comma, ","),
        }

    def problems_of_columns(self, names: Sequence[str], origin: str) -> Iterator[str]:
        """Yield a sentence unless the options are of columns of numbers, each of one sign.

        Args:
            names: names of the columns of numbers.
            origin: the options that give the columns, for the sentence.
        """
        columns = (*self.decimal_point, *self.decimal_comma)
        if stray := [name for name in columns if name not in names]:
            yield f"--decimal-point and --decimal-comma must be of {origin}; received {stray[0]!r}."
        if len(set(columns)) < len(columns):
            yield "--decimal-point and --decimal-comma: a column has one decimal sign."

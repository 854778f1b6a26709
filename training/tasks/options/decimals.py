"""Options of columns whose numbers are written for people, as 1,250.5, 12 % or 204.93亿."""

import click

from seqkeras.training.options import Names, option


def decimal_point():
    """Return the option `decimal_point`."""
    return option(
        (),
        Names(),
        "Columns of numbers written for people with a decimal point, such as 1,250.5, 12 % (read "
        "as 0.12) or 204.93亿.",
    )


def decimal_comma():
    """Return the option `decimal_comma`."""
    return option(
        (),
        Names(),
        "Columns of numbers written for people with a decimal comma, such as 1.250,5 or 12,5 %.",
    )


def decimals_of(options):
    """Return a dictionary: name of a column -> its decimal sign."""
    return {
        **dict.fromkeys(options.decimal_point, "."),
        **dict.fromkeys(options.decimal_comma, ","),
    }


def require_numbers(options, names, of):
    """Raise a `click.UsageError` unless the options are of columns of numbers, each of one sign.

    Args:
        options: what `decimals_of` takes.
        names: of the columns of numbers.
        of: the options that give them, for the error.
    """
    given = (*options.decimal_point, *options.decimal_comma)
    if stray := [name for name in given if name not in names]:
        raise click.UsageError(
            f"--decimal-point and --decimal-comma must be of {of}; received {stray[0]!r}."
        )
    if len(set(given)) < len(given):
        raise click.UsageError(
            "--decimal-point and --decimal-comma: a column has one decimal sign."
        )

"""--held-out: how much of a file is held out for validation, which every look answers."""

from typing import Any

from seqkeras.training.options import FRACTION, option

SHARE = 0.1
OF_SOURCES = 0.05  # of a translation
MOST = 10_000  # examples that are held out by default
MOST_CHARACTERS = 1_000_000  # of plain text


def held_out_option(what: str, share: float = SHARE, most: str = f"{MOST:,}") -> Any:
    """Return the option; `of` is what the share is of, `most` what is held out by default."""
    return option(
        None, FRACTION, f"Share of {what} that is held out. Default: {share}, at most {most}."
    )


def share_held_out(options: Any, size: int, share: float = SHARE, most: int = MOST) -> float:
    """Return the share of examples that is held out.

    Args:
        options: have `held_out`, None by default.
        size: number of examples.
        share, most: the share by default, and the examples that are held out then at most.
    """
    return min(share, most / max(size, 1)) if options.held_out is None else options.held_out

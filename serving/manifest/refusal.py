"""Reasons for a refusal: data for the code that handles them, one line for the reader."""

import os


class Refusal(ValueError):
    """Something can not be used.

        where: subject: reason; reason. Advice.

    Args:
        reasons: parts of a sentence; at least one.
        where: what is refused, such as a folder; None if the reasons name it.
        subject: the part that is wrong, such as a file in the folder; None for the whole.
        advice: a sentence that names a way out; "" if the reasons do.

    Example:
        >>> from seqkeras.serving.manifest import Refusal
        >>> refusal = Refusal("it is empty", where="my/bundle", advice="Export it again.")
        >>> str(refusal)
        'my/bundle: it is empty. Export it again.'
        >>> refusal.reasons
        ('it is empty',)
    """

    def __init__(
        self,
        *reasons: str,
        where: str | os.PathLike[str] | None = None,
        subject: str | None = None,
        advice: str = "",
    ):
        super().__init__(*reasons)
        self.reasons, self.where, self.subject, self.advice = reasons, where, subject, advice

    def __str__(self) -> str:
        places = [f"{name}: " for name in (self.where, self.subject) if name is not None]
        text = f"{''.join(places)}{'; '.join(self.reasons)}"
        return " ".join(filter(None, (text if text.endswith(".") else f"{text}.", self.advice)))


class OverLimit(Refusal):
    """An input has more than a limit allows, and may be truncated.

    Args:
        reason: what is over which limit.
        ways: the ways out, up to the name of the option that truncates.
        option: the option that truncates, as the caller writes it.

    Example:
        >>> from seqkeras.serving.manifest import OverLimit
        >>> print(OverLimit("at most 24 tokens; received 30"))
        at most 24 tokens; received 30. Nothing was truncated: shorten it, or ask for truncate=True.
        >>> print(OverLimit("at most 24 tokens; received 30").with_option("--truncate"))
        at most 24 tokens; received 30. Nothing was truncated: shorten it, or ask for --truncate.
    """

    def __init__(
        self,
        reason: str,
        ways: str = "shorten it, or ask for",
        option: str = "truncate=True",
    ):
        super().__init__(reason, advice=f"Nothing was truncated: {ways} {option}.")
        self.ways = ways

    def with_option(self, option: str) -> "OverLimit":
        """Return the error with the option as another caller writes it."""
        return OverLimit(self.reasons[0], self.ways, option)

"""Why something can not be used as it is: data for who handles it, one line for who reads it."""

import os


class Refusal(ValueError):
    """Something that can not be used as it is.

        where: subject: reason; reason. Advice.

    Args:
        reasons: parts of a sentence, one at least.
        where: what is refused, such as a folder; None where the reasons say it.
        subject: which part of that, such as a file in it; None for the whole.
        advice: a sentence that names a way out; "" where the reasons do.
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
        places = [f"{place}: " for place in (self.where, self.subject) if place is not None]
        text = f"{''.join(places)}{'; '.join(self.reasons)}"
        return " ".join(filter(None, (text if text.endswith(".") else f"{text}.", self.advice)))

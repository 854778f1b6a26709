"""What pipelines answer."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Translation:
    """A text and how sure the model is of it.

    Attributes:
        text: the answer.
        score: its total log-probability, divided by the length penalty (`decoding.py`).
        attention: None, or on request a (T, S) float32 array: for each target token of `text`,
            the weight of each source token. Rows sum to 1.
        alternatives: with n_best > 1, the other answers, the better one first.
    """

    text: str
    score: float
    attention: "numpy.ndarray | None" = None  # noqa: F821 (NumPy is loaded when a pipeline is)
    alternatives: "tuple[Translation, ...]" = ()

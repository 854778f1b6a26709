"""The expected and the actual answer of a signature on strings."""

import dataclasses

MARGIN = 1e-4  # answers may differ if the scores of the best two differ by less


@dataclasses.dataclass(frozen=True)
class ExpectedAnswer:
    """An answer of a signature on strings, and the expected one."""

    actual: str = ""
    expected: str = ""
    is_tie: bool = False  # whether another string has the same score, up to `MARGIN`
    numbers: object = ()
    expected_numbers: object = ()  # of the same shape


def expected_text(outputs, expected, score, is_tie):
    """Return the `ExpectedAnswer` of a generated text; `is_tie` takes another text."""
    text = outputs["text"].decode()
    if text != expected:
        return ExpectedAnswer(text, expected, is_tie(text))
    return ExpectedAnswer(text, expected, numbers=outputs["score"], expected_numbers=score)

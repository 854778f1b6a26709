"""What a signature on strings should answer, beside what it answers."""

import dataclasses

MARGIN = 1e-4  # strings may differ where the two best answers are nearer to each other than this


@dataclasses.dataclass(frozen=True)
class ExpectedAnswer:
    """An answer of a signature on strings, and the one that is expected.

    Attributes:
        actual, expected: the signature's string, and what it should be.
        is_tie: whether another string is as good.
        numbers, expected_numbers: the same of its numbers, of one shape.
    """

    actual: str = ""
    expected: str = ""
    is_tie: bool = False
    numbers: object = ()
    expected_numbers: object = ()


def expected_text(outputs, expected, score, is_tie):
    """The `ExpectedAnswer` of a text that is generated.

    Args:
        outputs: of the signature, by name.
        expected, score: the text, and its log-probability.
        is_tie: takes another text, and says whether it may be that.
    """
    text = outputs["text"].decode()
    if text != expected:
        return ExpectedAnswer(text, expected, is_tie(text))
    return ExpectedAnswer(text, expected, numbers=outputs["score"], expected_numbers=score)

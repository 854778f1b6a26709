"""Edit distance of answers from their targets, as rates; tokens have spaces between them.

A text may have several right targets: pronunciations of a word. From letters to phonemes, the rate
of tokens is the phoneme error rate, the rate of sequences the word error rate.
"""

from collections.abc import Iterable, Sequence

from seqkeras.metrics.pairs import pairs_of


def token_error_rate(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> float:
    """Return the edits that make texts of their targets, by the targets' tokens.

        rate = sum_i min over d(text_i, target) / sum_i |target|

    d is Levenshtein's distance in tokens: one for each token that is put in, left out or changed.
    Where a text has several targets, the nearest counts; a tie goes to the longest.

    Args:
        texts: n strings, tokens with spaces between.
        targets: for each a string, or a list of strings that are right.

    Returns:
        A number of at least 0; it may be over 1.

    Raises:
        ValueError: if there is no text, or not one target for each, or no target has a token.

    Reference: Levenshtein 1966, "Binary codes capable of correcting deletions, insertions, and
    reversals", Soviet Physics Doklady 10

    Example:
        >>> from seqkeras.metrics import token_error_rate
        >>> token_error_rate(["k æ t s"], ["k æ t"])  # one phoneme too many, of three
        0.3333333333333333
        >>> token_error_rate(["t ə m ɑ t oʊ"], [["t ə m eɪ t oʊ", "t ə m ɑ t oʊ"]])
        0.0
    """
    from rapidfuzz.distance import Levenshtein  # what only trains needs no rapidfuzz

    edits = length = 0
    for text, target in pairs_of("token_error_rate", texts, targets):
        tokens = text.split()
        options = [option.split() for option in _listed(target)]
        distances = [(Levenshtein.distance(tokens, option), -len(option)) for option in options]
        distance, negative = min(distances)
        edits, length = edits + distance, length - negative
    if not length:
        raise ValueError("token_error_rate: targets must hold at least one token; they hold none.")
    return edits / length


def sequence_error_rate(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> float:
    """Return the share of texts whose tokens equal the tokens of no target.

    Args:
        texts, targets: see `token_error_rate`.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Example:
        >>> from seqkeras.metrics import sequence_error_rate
        >>> sequence_error_rate(["k æ t s", "d ɔ g"], ["k æ t", ["d ɒ g", "d ɔ g"]])
        0.5
    """
    pairs = pairs_of("sequence_error_rate", texts, targets)
    wrong = [text.split() not in map(str.split, _listed(target)) for text, target in pairs]
    return sum(wrong) / len(wrong)


def _listed(target):
    return [target] if isinstance(target, str) else target

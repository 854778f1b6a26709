"""How near texts are to their targets, by their characters."""

from seqkeras.metrics.pairs import pairs_of


def chrf(texts, targets):
    """chrF2 of a corpus: the F-score of the n-grams of characters that texts share with targets.

        chrF = (1 + 2^2) P R / (2^2 P + R)

    P and R are the means of the precisions and of the recalls for n = 1..6, without white space. It
    also ranks answers that are not exact.

    Args:
        texts, targets: n strings each.

    Returns:
        A number from 0 to 1 (sacrebleu's is from 0 to 100).

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Popovic 2015, https://aclanthology.org/W15-3049, as sacrebleu computes it
    """
    from sacrebleu.metrics import CHRF  # what only trains needs no sacrebleu

    texts, targets = zip(*pairs_of("chrf", texts, targets))
    return CHRF().corpus_score(texts, [targets]).score / 100

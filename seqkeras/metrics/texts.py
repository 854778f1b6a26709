"""BLEU and chrF of texts against their targets, by words and by characters, from sacrebleu.

A text may have several right targets.
"""

import itertools
from collections.abc import Iterable, Sequence

from seqkeras.metrics.pairs import pairs_of


def bleu(
    texts: Iterable[str], targets: Iterable[str | Sequence[str]], tokenize: str = "13a"
) -> float:
    """Return BLEU of a corpus: the n-grams of words that texts share with their targets.

        BLEU = min(1, exp(1 - r / c)) (p_1 p_2 p_3 p_4)^(1/4)

    Notation: p_n is the share of n-grams that stand in a target; c and r are the numbers of words
    in texts and in the targets of nearest length. A p_n of zero is smoothed as by sacrebleu.

    Args:
        texts: n strings.
        targets: for each a string, or a list of strings that are right.
        tokenize: sacrebleu's way to words: "13a", "zh", "intl", "char"; "none" for texts whose
            words have spaces between them, as in the "tokenized BLEU" of papers.

    Returns:
        A number from 0 to 1 (sacrebleu's is from 0 to 100).

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Papineni et al. 2002, https://aclanthology.org/P02-1040; Post 2018,
    https://aclanthology.org/W18-6319

    Example:
        >>> from seqkeras.metrics import bleu
        >>> bleu(["the cat sat on the mat"], ["the cat sat on the mat"])
        1.0
        >>> round(bleu(["the cat sat on a mat"], [["the cat sat on the mat", "a cat sat"]]), 3)
        0.562
    """
    return signed_bleu(texts, targets, tokenize)[0]


def signed_bleu(
    texts: Iterable[str], targets: Iterable[str | Sequence[str]], tokenize: str = "13a"
) -> tuple[float, str]:
    """Return the score of `bleu` and sacrebleu's signature, which says how it was computed.

    Args:
        texts, targets, tokenize: see `bleu`.

    Returns:
        A number from 0 to 1, and a string such as "nrefs:1|case:mixed|eff:no|tok:13a|…".

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: see `bleu`.

    Example:
        >>> from seqkeras.metrics import signed_bleu
        >>> score, signature = signed_bleu(["the cat sat on the mat"], ["the cat sat on the mat"])
        >>> signature.partition("|version")[0]
        'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp'
    """
    from sacrebleu.metrics import BLEU  # what only trains needs no sacrebleu

    # A corpus that is tokenized is what it is asked for: no warning of it.
    return _signed("bleu", BLEU(tokenize=tokenize, force=True), texts, targets)


def chrf(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> float:
    """Return chrF2 of a corpus: the F-score of the n-grams of characters that texts share with
    targets.

        chrF = (1 + 2^2) P R / (2^2 P + R)

    P and R are the means of the precisions and of the recalls for n = 1..6, without white space.
    chrF also ranks answers of which none is exact.

    Args:
        texts: n strings.
        targets: for each a string, or a list of strings that are right.

    Returns:
        A number from 0 to 1 (sacrebleu's is from 0 to 100).

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Popovic 2015, https://aclanthology.org/W15-3049, as sacrebleu computes it

    Example:
        >>> from seqkeras.metrics import chrf
        >>> round(chrf(["2014-05-03"], ["2014-05-04"]), 3)
        0.859
    """
    return signed_chrf(texts, targets)[0]


def signed_chrf(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> tuple[float, str]:
    """Return the score of `chrf` and sacrebleu's signature, which says how it was computed.

    Args:
        texts, targets: see `chrf`.

    Returns:
        A number from 0 to 1, and a string such as "nrefs:1|case:mixed|eff:yes|nc:6|…".

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: see `chrf`.

    Example:
        >>> from seqkeras.metrics import signed_chrf
        >>> score, signature = signed_chrf(["2014-05-03"], ["2014-05-04"])
        >>> signature.partition("|version")[0]
        'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no'
    """
    from sacrebleu.metrics import CHRF

    return _signed("chrf", CHRF(), texts, targets)


def _signed(name, metric, texts, targets):
    texts, targets = zip(*pairs_of(name, texts, targets))
    targets = [[target] if isinstance(target, str) else target for target in targets]
    streams = [*itertools.zip_longest(*targets)]  # None where a text has no further target
    score = min(1.0, metric.corpus_score(texts, streams).score / 100)  # 1.0000000000000004
    return score, str(metric.get_signature())

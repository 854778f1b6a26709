"""How much of a summary's words, pairs of words and order is in its target."""

from seqkeras.metrics.pairs import pairs_of

MEASURES = ("rouge1", "rouge2", "rougeL")


def rouge(texts, targets):
    """ROUGE of a corpus, as Google's `rouge-score` computes it: the mean of each text's F1.

        ROUGE-n = 2 P R / (P + R),   P, R = shared n-grams of words / those of the text, the target
        ROUGE-L = the same of the longest common subsequence

    Words are runs of a-z and 0-9 in lower case, by Porter's stems. It says little of languages with
    other letters.

    Args:
        texts, targets: n strings each.

    Returns:
        {"rouge1", "rouge2", "rougeL"}: numbers from 0 to 1.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Lin 2004, https://aclanthology.org/W04-1013;
    https://github.com/google-research/google-research/tree/master/rouge
    """
    from rouge_score.rouge_scorer import RougeScorer  # what only trains needs no rouge-score

    pairs = pairs_of("rouge", texts, targets)
    scorer = RougeScorer(MEASURES, use_stemmer=True)
    found = [scorer.score(target, text) for text, target in pairs]
    return {name: sum(score[name].fmeasure for score in found) / len(found) for name in MEASURES}

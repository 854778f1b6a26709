"""ROUGE: the overlap of a summary with its target in words, pairs of words and order."""

import unicodedata
from collections.abc import Iterable

from seqkeras.metrics.pairs import pairs_of
from seqkeras.serving.text import word_places
from seqkeras.serving.text.characters import WITHOUT_SPACES

MEASURES = ("rouge1", "rouge2", "rougeL")


def rouge(texts: Iterable[str], targets: Iterable[str]) -> dict[str, float]:
    """Return ROUGE of a corpus as Google's `rouge-score` computes it: the mean of each text's F1.

        ROUGE-n = 2 P R / (P + R),   P = shared n-grams of words / n-grams of the text
                                     R = shared n-grams of words / n-grams of the target
        ROUGE-L = 2 P R / (P + R), with the longest common subsequence for what is shared

    Words are runs of a-z and 0-9 in lower case, by Porter's stems. `rouge-score` leaves out other
    scripts than Latin. Here, a text whose letters are mostly of another script has runs of letters
    and digits for its words, without stems; in scripts without spaces, such as Chinese, each
    character is a word.

    Args:
        texts, targets: n strings each.

    Returns:
        {"rouge1", "rouge2", "rougeL"}: numbers from 0 to 1.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Lin 2004, https://aclanthology.org/W04-1013;
    https://github.com/google-research/google-research/tree/master/rouge

    Example:
        >>> from seqkeras.metrics import rouge
        >>> scores = rouge(["the cat sat"], ["the cat sat down"])
        >>> {name: round(score, 3) for name, score in scores.items()}
        {'rouge1': 0.857, 'rouge2': 0.8, 'rougeL': 0.857}
    """
    from rouge_score.rouge_scorer import RougeScorer  # what only trains needs no rouge-score

    pairs = pairs_of("rouge", texts, targets)
    scorer = RougeScorer(MEASURES, tokenizer=_Words())
    scores = [scorer.score(target, text) for text, target in pairs]
    return {name: sum(score[name].fmeasure for score in scores) / len(scores) for name in MEASURES}


class _Words:
    """Google's tokenizer, with words of texts in other scripts than Latin."""

    def __init__(self) -> None:
        from rouge_score.tokenizers import DefaultTokenizer

        self.latin = DefaultTokenizer(use_stemmer=True)

    def tokenize(self, text: str) -> list[str]:
        letters = [*filter(str.isalpha, text)]
        if 2 * sum(map(_is_latin, letters)) >= len(letters):
            return self.latin.tokenize(text)
        text = WITHOUT_SPACES.sub(r" \g<0> ", text.lower())
        words = (text[start:end] for start, end in word_places(text))
        return [word for word in words if unicodedata.category(word[0])[0] in "LMN"]


def _is_latin(letter):
    return unicodedata.name(letter, "").startswith(("LATIN", "FULLWIDTH LATIN"))

"""Answers to questions, as the Stanford Question Answering Dataset scores them.

Articles are English, punctuation is ASCII's, and words are what stands between
spaces. A text that holds a character of a script without spaces is read as by MLQA's script for
Chinese: each such character is a word, all punctuation of Unicode is left out, and articles stay.
MLQA does so for Chinese alone; here Japanese, Thai, Lao, Burmese and Khmer are read likewise.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from seqkeras.metrics.pairs import pairs_of
from seqkeras.serving.text.characters import WITHOUT_SPACES

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_exact_match(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> float:
    """Return the share of texts that equal one of their targets but for case, punctuation, articles
    and white space.

    Targets that are empty after that count only if all of them are: the question has no answer.

    Args:
        texts: n strings; "" for no answer.
        targets: for each a string, or a list of strings that are right; "" or an empty list where
            there is no answer.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Rajpurkar et al. 2016, section 6.1, https://arxiv.org/abs/1606.05250; questions
    without an answer: Rajpurkar et al. 2018, https://arxiv.org/abs/1806.03822 (evaluate-v2.0.py);
    scripts without spaces: Lewis et al. 2020, https://arxiv.org/abs/1910.07475
    (mlqa_evaluation_v1.py)

    Example:
        >>> from seqkeras.metrics import squad_exact_match
        >>> squad_exact_match(["The Eiffel Tower."], [["eiffel tower", "Tower"]])
        1.0
        >>> squad_exact_match(["", "1889"], [[], []])  # neither question has an answer
        0.5
    """
    return float(np.mean(_of_each(_is_equal, "squad_exact_match", texts, targets)))


def squad_f1(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> float:
    """Return the mean F1 of the words of texts and of their targets, normalised as for
    `squad_exact_match`.

        F1 = 2 P R / (P + R),  P = common / words of the text,  R = common / words of the target

    A word is common as often as it is in both. The best F1 among several targets counts.
    Where a text or its target has no word, F1 is 1 if both have none, else 0.

    Args:
        texts, targets: see `squad_exact_match`.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: see `squad_exact_match`.

    Example:
        >>> from seqkeras.metrics import squad_f1
        >>> squad_f1(["the tower in Paris"], ["Eiffel tower"])  # 1 word of 3, and 1 of 2
        0.4
    """
    return float(np.mean(_of_each(_f1, "squad_f1", texts, targets)))


def squad_scores(texts: Iterable[str], targets: Iterable[str | Sequence[str]]) -> dict[str, Any]:
    """Return exact match and F1 of all questions, of answerable ones and of unanswerable ones.

    Args:
        texts, targets: see `squad_exact_match`.

    Returns:
        {"questions", "exact_match", "f1"}, and where there are questions of both kinds the same
        scores of "with_answer" and "without_answer": the official HasAns and NoAns.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: see `squad_exact_match`.

    Example:
        >>> from seqkeras.metrics import squad_scores
        >>> scores = squad_scores(["1889", "1890"], [["1889"], []])
        >>> scores["f1"], scores["with_answer"]["f1"], scores["without_answer"]["f1"]
        (0.5, 1.0, 0.0)
    """
    texts, targets = [*texts], [*targets]
    exact = np.array(_of_each(_is_equal, "squad_scores", texts, targets), "float64")
    f1 = np.array(_of_each(_f1, "squad_scores", texts, targets))
    answered = np.array([_right(target) != [[]] for target in targets])

    def of(rows):
        means = {"exact_match": float(exact[rows].mean()), "f1": float(f1[rows].mean())}
        return {"questions": int(rows.sum())} | means

    scores = of(np.ones(len(texts), bool))
    if answered.any() and not answered.all():
        scores |= {"with_answer": of(answered), "without_answer": of(~answered)}
    return scores


def best_no_answer_threshold(
    texts: Iterable[str], targets: Iterable[str | Sequence[str]], margins: Iterable[float]
) -> tuple[float, float]:
    """Return the threshold that gives the best F1 where a question may have no answer.

        answer(i) = text(i) if margin(i) > threshold, else none

    A threshold lies halfway between two margins, so that a small error of a margin changes nothing.
    A tie goes to the highest threshold. The official script walks through margins one by one, and
    so may cut between equal ones, which no threshold does.

    Args:
        texts: the best answer to each question, as if all had one.
        targets: see `squad_exact_match`.
        margins: how much better each text is than no answer.

    Returns:
        The threshold, and the F1 that it gives.

    Raises:
        ValueError: see `squad_exact_match`, or if there is not one margin for each text.

    Reference: Devlin et al. 2019, section 4.3, https://arxiv.org/abs/1810.04805; Rajpurkar et al.
    2018, evaluate-v2.0.py (find_best_thresh)

    Example:
        >>> from seqkeras.metrics import best_no_answer_threshold
        >>> texts, targets = ["1889", "1890", "Paris"], [["1889"], [], ["Paris"]]
        >>> best_no_answer_threshold(texts, targets, margins=[3.0, -1.0, 2.0])
        (0.5, 1.0)
    """
    texts, margins = [*texts], np.asarray([*margins], "float64")
    if len(margins) != len(texts):
        raise ValueError(
            "best_no_answer_threshold: needs one margin for each text; received "
            f"{len(margins)} margins and {len(texts)} texts."
        )
    of_texts = np.array(_of_each(_f1, "best_no_answer_threshold", texts, targets))
    of_none = np.array([float(_right(target) == [[]]) for target in targets])
    order = np.argsort(-margins, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum((of_texts - of_none)[order])])
    ordered = margins[order]
    # Between two margins, above all of them, or below.
    cuts = [0, *np.flatnonzero(ordered[1:] < ordered[:-1]) + 1, len(ordered)]
    best = max(cuts, key=lambda cut: (gains[cut], -cut))
    edges = np.concatenate([[ordered[0] + 2], ordered, [ordered[-1] - 2]])
    threshold = float((edges[best] + edges[best + 1]) / 2)
    return threshold, float((of_none.sum() + gains[best]) / len(texts))


def _of_each(score, metric, texts, targets):
    """Return the best score of each text over its targets."""
    return [
        max(score(_words(text), right) for right in _right(target))
        for text, target in pairs_of(metric, texts, targets)
    ]


def _right(target):
    """Return the words of each right answer; [[]] for none."""
    words = map(_words, [target] if isinstance(target, str) else target)
    return [answer for answer in words if answer] or [[]]


def _is_equal(words, target):
    return words == target


def _f1(words, target):
    if not words or not target:
        return float(words == target)
    common = (Counter(words) & Counter(target)).total()
    return 2 * common / (len(words) + len(target))


def _words(text):
    if WITHOUT_SPACES.search(text):
        characters = (character for character in text.lower() if not _is_punctuation(character))
        return WITHOUT_SPACES.sub(r" \g<0> ", "".join(characters)).split()
    return ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def _is_punctuation(character):
    return character in string.punctuation or unicodedata.category(character)[0] == "P"

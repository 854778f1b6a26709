"""Classes and numbers of texts by the words in them, or by the class or the number of most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np

from seqkeras.serving.results import Classification
from seqkeras.training.baselines import Method, sampled

PENALTIES = (0.3, 3.0, 30.0)  # C of logistic regression; 1 / alpha of ridge regression
OF_NUMBERS = (0.01, 0.1, 1.0, 10.0)  # the same where features are standardised
TOLERANCE = 1e-2  # of logistic regression's search: a smaller one takes longer for equal answers
CHOSEN_ON = 0.1  # share of the training rows on which the penalty is chosen
MOST_CHARACTERS = 5_000_000  # of the texts that are learned
MOST_DECISIONS = 2e8  # characters times classes
WORD = r"(?u)\b\w+\b"
LONGEST_WORD = 12.0  # characters between two spaces on average: a language without spaces


def classes_of_texts(examples: Sequence[Any], labels: Sequence[str], seed: int) -> list[Method]:
    """Return the `Method`s of texts, or tuples of texts, with a label each.

    Args:
        examples: training examples, with a `text` and a `target`.
        labels: labels of the model.
        seed: of the rows on which the penalty is chosen.
    """
    kept, learned_on = _learned(examples, most_characters(labels))

    def answer(others):
        return classifier_of_texts(kept, labels, seed)([other.text for other in others])

    name = name_of_features([example.text for example in kept])
    return [most_frequent(examples, labels), Method(name, answer, learned_on)]


def _learned(examples, most):
    """Return examples whose texts have so many characters at most, and in words which these are."""
    characters = _characters(example.text for example in examples)
    return sampled(examples, len(examples) * most / max(characters, 1))


def most_characters(labels: Sized) -> float:
    """Return how many characters are learned of texts with these labels."""
    return min(MOST_CHARACTERS, MOST_DECISIONS / len(labels))


def classifier_of_texts(
    examples: Sequence[Any], labels: Sequence[str], seed: int
) -> Callable[[list[Any]], list[Classification]]:
    """Return a function: texts -> answers, learned on examples; see `classes_of_texts` for the
    arguments."""
    texts, targets = _columns(examples)
    features = tf_idf(texts)
    given = features.fit_transform(texts), np.array(targets)
    model = with_penalty(logistic, PENALTIES, given, seed)

    def classify(texts):
        probabilities = model.predict_proba(features.transform(texts))
        return classifications(labels, model.classes_, probabilities)

    return classify


def numbers_of_texts(examples: Sequence[Any], seed: int) -> list[Method]:
    """Return the `Method`s of texts, or tuples of texts, with a number each; see
    `classes_of_texts` for the arguments."""
    kept, learned_on = _learned(examples, MOST_CHARACTERS)
    mean = float(np.mean(np.fromiter((example.target for example in examples), "float64")))

    def answer(others):
        texts, targets = _columns(kept)
        features = tf_idf(texts)
        given = features.fit_transform(texts), np.array(targets)
        model = with_penalty(_ridge, PENALTIES, given, seed)
        asked = features.transform([other.text for other in others])
        return [Classification((), number, {}) for number in model.predict(asked).tolist()]

    return [
        Method("mean", lambda others: [Classification((), mean, {})] * len(others)),
        Method(name_of_features([example.text for example in kept]), answer, learned_on),
    ]


def classes_of_frames(recordings: Sequence[Any], labels: Sequence[str], seed: int) -> list[Method]:
    """Return the `Method`s of recordings with a label each: mean, deviation and last frame."""

    def features(others):
        return np.stack([summary_of(other.numbers) for other in others])

    def answer(others):
        targets = np.array([recording.target for recording in recordings])
        model = with_penalty(_scaled_logistic, OF_NUMBERS, (features(recordings), targets), seed)
        return classifications(labels, model.classes_, model.predict_proba(features(others)))

    name = "mean, deviation and last frame"
    return [most_frequent(recordings, labels), Method(name, answer)]


def summary_of(frames: np.ndarray) -> np.ndarray:
    """Return (3 numbers,): mean, standard deviation and last value over (frames, numbers); what is
    NaN counts nothing, and is 0 where there is no number."""
    known = ~np.isnan(frames)
    filled, count = np.where(known, frames, 0), np.maximum(known.sum(axis=0), 1)
    mean = filled.sum(axis=0) / count
    deviation = np.sqrt((np.where(known, frames - mean, 0) ** 2).sum(axis=0) / count)
    return np.concatenate([mean, deviation, filled[-1]])


def most_frequent(examples: Sequence[Any], labels: Sequence[str]) -> Method:
    """Return the `Method` that answers the most frequent label; ties go to the first in order."""
    counts = Counter(example.target for example in examples)
    shares = np.array([[counts[label] / len(examples) for label in labels]])
    answers = classifications(labels, labels, shares)
    return Method("most frequent class", lambda others: answers * len(others))


def classifications(
    labels: Sequence[str], known: Sequence[str], probabilities: np.ndarray
) -> list[Classification]:
    """Return (rows,) answers.

    Args:
        labels: labels of the model; those that are not known have the probability 0.
        known: labels of the columns.
        probabilities: (rows, columns).
    """
    nothing = dict.fromkeys(labels, 0.0)
    answers = []
    for row in probabilities:
        scores = nothing | dict(zip(map(str, known), row.tolist()))
        label = max(scores, key=scores.__getitem__)
        answers.append(Classification((label,), scores[label], scores))
    return answers


def tf_idf(texts: Sequence[Any]) -> Any:
    """Return scikit-learn's vectorizer of texts, or tuples of texts: words and pairs of words, each
    with the place of its text before it.

    Where texts have no spaces, or no two words, features are 1 to 4 characters.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    kind: dict[str, Any] = {"token_pattern": WORD, "ngram_range": (1, 2)}
    if _without_words(texts):
        kind = {"analyzer": "char_wb", "ngram_range": (1, 4)}
    analyze = TfidfVectorizer(**kind).build_analyzer()

    def tokens(text):
        sides = enumerate(_parts(text))
        return [f"{side} {token}" for side, part in sides for token in analyze(part)]

    return TfidfVectorizer(analyzer=tokens, sublinear_tf=True)


def with_penalty(
    kind: Callable[[float], Any],
    penalties: Sequence[float],
    given: tuple[Any, np.ndarray],
    seed: int,
) -> Any:
    """Return an estimator of scikit-learn, learned with the penalty that scores best on a tenth of
    the rows.

    Args:
        kind: penalty -> a new estimator.
        penalties: the first of equally good ones is chosen.
        given: features and targets of all rows.
        seed: of the tenth.
    """
    from threadpoolctl import threadpool_limits

    features, targets = given
    order = np.random.default_rng(seed).permutation(len(targets))
    count = max(1, round(CHOSEN_ON * len(order)))
    held, rest = order[:count], order[count:]

    def score(penalty):
        model = kind(penalty).fit(features[rest], targets[rest])
        return model.score(features[held], targets[held])

    enough = len({*targets[rest].tolist()}) > 1
    with threadpool_limits(1, user_api="blas"):  # threads of many small products wait in vain
        penalty = max(penalties, key=score) if enough else penalties[0]
        return kind(penalty).fit(features, targets)


def logistic(penalty: float) -> Any:
    """Return scikit-learn's logistic regression, of each class against the others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(LogisticRegression(C=penalty, solver="liblinear", tol=TOLERANCE))


def _scaled_logistic(penalty):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), logistic(penalty))


def _ridge(penalty):
    from sklearn.linear_model import Ridge

    return Ridge(alpha=1 / penalty, solver="sparse_cg", tol=1e-7)


def _columns(examples):
    return [[*column] for column in zip(*((example.text, example.target) for example in examples))]


def name_of_features(texts: Sequence[Any]) -> str:
    """Return what `tf_idf` reads of texts, in words."""
    return "1 to 4 characters" if _without_words(texts) else "words and pairs"


def _without_words(texts):
    words = sum(len(part.split()) for text in texts for part in _parts(text))
    sides = sum(len(_parts(text)) for text in texts)
    return words < 2 * sides or _characters(texts) > LONGEST_WORD * words


def _characters(texts):
    return sum(len(part) for text in texts for part in _parts(text))


def _parts(text):
    return text if isinstance(text, tuple) else (text,)

"""Tags of words by the tag that a word has most often, and tags of frames by their numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from seqkeras.serving.results import Tagging, Word
from seqkeras.training.baselines import Method, sampled
from seqkeras.training.parts.baselines.texts import OF_NUMBERS, logistic, with_penalty

SUFFIX = 3  # letters of an unknown word that tell its tag
MOST_FRAMES = 50_000  # that are learned


def tags_of_words(examples: Sequence[Any], starts: Callable[[Any], Iterable[int]]) -> list[Method]:
    """Return the `Method` that answers each word's most frequent tag of training; an unknown word
    has the most frequent tag of its last three letters, or else of all words.

    Args:
        examples: training examples, with words as a `text` and a list of tags as a `target`.
        starts: example -> the place of each of its words.
    """
    by_word, by_suffix, all_tags = defaultdict(Counter), defaultdict(Counter), Counter()
    for example in examples:
        for word, tag in zip(example.text, example.target, strict=True):
            by_word[word][tag] += 1
            by_suffix[word[-SUFFIX:]][tag] += 1
            all_tags[tag] += 1

    def tag_of(word):
        return _most(by_word.get(word) or by_suffix.get(word[-SUFFIX:]) or all_tags)

    def answer(others):
        return [taggings(starts(other), map(tag_of, other.text)) for other in others]

    return [Method("most frequent tag of a word", answer)]


def tags_of_frames(recordings: Sequence[Any], seed: int) -> list[Method]:
    """Return the `Method`s of recordings with a tag for each frame: the most frequent tag, and
    logistic regression on the numbers of the frame alone.

    Args:
        recordings: training examples.
        seed: of the frames on which the penalty is chosen.
    """
    tags = [tag for recording in recordings for tag in recording.target]
    most = _most(Counter(tags))
    places, learned_on = sampled(range(len(tags)), MOST_FRAMES, "frames")

    def learned(others):
        numbers = np.concatenate([recording.numbers for recording in recordings])
        given = numbers[places], np.array(tags)[places]
        model = with_penalty(_of_numbers, OF_NUMBERS, given, seed)
        return [
            taggings(range(len(other)), model.predict(other.numbers).tolist()) for other in others
        ]

    def constant(others):
        return [taggings(range(len(other)), [most] * len(other)) for other in others]

    return [
        Method("most frequent tag", constant),
        Method("numbers of the frame", learned, learned_on),
    ]


def taggings(starts: Iterable[int], tags: Iterable[str]) -> Tagging:
    """Return an answer of tags alone, by the place of each word."""
    words = (Word("", tag, start, start, 1.0) for start, tag in zip(starts, tags, strict=True))
    return Tagging(tuple(words), ())


def _most(counts):
    """Return the most frequent tag; ties go to the first in alphabetical order."""
    return min(counts, key=lambda tag: (-counts[tag], tag))


def _of_numbers(penalty):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    known = FunctionTransformer(np.nan_to_num)  # a missing number is the mean
    return make_pipeline(StandardScaler(), known, logistic(penalty))

"""What a subword tokenizer makes of a text, and what it may be given."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as a model reads it; all lists have one length.

    Attributes:
        token_ids: the ids, those of special tokens too.
        tokens: what each id stands for.
        offsets: where each token lies in its own text as it was given, text[start:end]; None for
            special tokens, which lie nowhere. Tokens that share a character share its place.
        segment_ids: to which text each token belongs, 0 or 1, as the tokenizer's template has it.
        word_ids: of which word of its own text each token is a part, counted from 0; None for
            special tokens.
        texts: the texts as they were given, to which the offsets refer.
    """

    token_ids: list
    tokens: list
    offsets: list
    segment_ids: list
    word_ids: list
    texts: tuple = ()

    def __len__(self):
        return len(self.token_ids)

    def words(self) -> list[tuple[str, int]]:
        """Return the words as they are written, and of how many tokens each consists.

        A special token, and one of no word, is a word of its own.
        """
        runs, number, before = [], -1, None
        for place, offset in enumerate(self.offsets):
            if offset is not None and before is None:
                number += 1  # special tokens stand around each text
            word = None if offset is None else self.word_ids[place]
            if word is not None and runs and runs[-1][0] == (number, word):
                runs[-1][1].append(place)
            else:
                runs.append(((number, word), [place]))
            before = offset
        return [(self._written(number, places), len(places)) for (number, _), places in runs]

    def _written(self, number, places):
        first, last = self.offsets[places[0]], self.offsets[places[-1]]
        if first is None or number >= len(self.texts):
            return "".join(self.tokens[place] for place in places)
        return self.texts[number][first[0] : last[1]].strip() or self.tokens[places[0]]


def of_words(
    weights: np.ndarray, target_counts: Sequence[int], source_counts: Sequence[int]
) -> np.ndarray:
    """Return the attention between words, of that between their tokens.

        words(t, s) = mean over the tokens of t of the sum over the tokens of s

    Args:
        weights: (..., T, S); what stands behind the tokens of the last word is padding.
        target_counts, source_counts: of how many tokens each word consists.

    Returns:
        An array (..., words of the target, words of the source) of its own.

    Raises:
        ValueError: if there are fewer tokens than the words consist of.

    Reference: Clark et al. 2019, section 4.1, https://arxiv.org/abs/1906.04341
    """
    target, source = (np.array(counts, dtype=int) for counts in (target_counts, source_counts))
    if weights.shape[-2] < target.sum() or weights.shape[-1] < source.sum():
        raise ValueError(
            f"of_words: weights must be of {target.sum()} by {source.sum()} tokens at least; "
            f"received shape {weights.shape}."
        )
    weights = weights[..., : target.sum(), : source.sum()]
    if (source > 1).any():
        weights = np.add.reduceat(weights, np.cumsum(source) - source, axis=-1)
    if (target > 1).any():
        sums = np.add.reduceat(weights, np.cumsum(target) - target, axis=-2)
        weights = sums / target[:, np.newaxis].astype(sums.dtype)
    return weights.copy()


def require_text(who, text):
    """Raise a ValueError unless `text` is a string that UTF-8 can hold."""
    if not isinstance(text, str):
        raise ValueError(f"{who}: text must be a string; received {text!r}.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{who}: text must hold no lone surrogate; received {text[error.start]!r} at "
            f"{error.start}."
        ) from error


def fit(who, lengths, num_special, max_length, truncate):
    """How many tokens of each text there is room for.

    The longer text loses its last token until both fit; of two equal ones the second.

    Args:
        who: for the error.
        lengths: the number of tokens of each text.
        num_special: how many special tokens stand around them.
        max_length: how many tokens there may be in all; None for any number.
        truncate: False refuses what does not fit.

    Raises:
        ValueError: if the texts do not fit and may not be cut, or not even the special tokens do.

    Reference: https://github.com/google-research/bert (run_classifier._truncate_seq_pair)
    """
    kept, total = list(lengths), sum(lengths) + num_special
    if max_length is None or total <= max_length:
        return kept
    if max_length < num_special:
        raise ValueError(
            f"{who}: max_length must leave room for {num_special} special tokens; "
            f"received {max_length}."
        )
    if not truncate:
        raise ValueError(
            f"{who}: there must be at most max_length, {max_length}, tokens; received {total}, "
            f"{num_special} of them special. truncate=True cuts what is too long."
        )
    room = max_length - num_special
    if len(kept) == 1:
        return [room]
    if min(kept) <= room // 2:  # the longer one alone is cut
        longer = kept.index(max(kept))
        kept[longer] = room - kept[1 - longer]
        return kept
    return [room - room // 2, room // 2]

"""The encoding of a text by a subword tokenizer, and checks of its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .characters import may_end_word


@dataclass(frozen=True)
class Encoding:
    """The model's input for a text, or a pair of texts; all lists have one length.

    Attributes:
        token_ids: the ids, special tokens included.
        tokens: the token of each id.
        offsets: (start, end) of each token in its text, as given; None for special tokens. Tokens
            that share a character share its offsets.
        segment_ids: the text of each token, 0 or 1, by the tokenizer's template.
        word_ids: the index of each token's word in its text, from 0; None for special tokens.
        texts: the given texts, to which the offsets refer.

    Example:
        >>> from seqkeras.serving.text import word_piece
        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> encoding = word_piece([*special, "un", "##seen"]).analyze("Unseen")
        >>> encoding.tokens, encoding.offsets
        (['[CLS]', 'un', '##seen', '[SEP]'], [None, (0, 2), (2, 6), None])
        >>> encoding.words()
        [('[CLS]', 1), ('Unseen', 2), ('[SEP]', 1)]
    """

    token_ids: list
    tokens: list
    offsets: list
    segment_ids: list
    word_ids: list
    texts: tuple = ()

    def __len__(self):
        return len(self.token_ids)

    def __eq__(self, other):
        if not isinstance(other, Encoding):
            return NotImplemented
        return all(getattr(self, part.name) == getattr(other, part.name) for part in PARTS)

    def words(self) -> list[tuple[str, int]]:
        """Return the words as written in the text, with their numbers of tokens.

        A special token, or a token without a word, is a separate word, as is a token of a script
        without spaces, as Chinese, Japanese and Thai, unless it cuts a character.
        """
        runs: list = []
        number, before = -1, None
        for index, offset in enumerate(self.offsets):
            if offset is not None and before is None:
                number += 1  # special tokens stand around each text
            word = None if offset is None else self.word_ids[index]
            same = word is not None and runs and runs[-1][0] == (number, word)
            if same and not self._begins_word(number, runs[-1][1], index):
                runs[-1][1].append(index)
            else:
                runs.append(((number, word), [index]))
            before = offset
        return [(self._written(number, places), len(places)) for (number, _), places in runs]

    def _begins_word(self, number, places, index):
        """Return whether a token begins a word of a script without spaces, after tokens of one
        word."""
        (start, _), (_, end), (begin, _) = (
            self.offsets[token] for token in (places[0], places[-1], index)
        )
        if number >= len(self.texts) or begin < end or not self.texts[number][start:begin].strip():
            return False
        return begin < len(self.texts[number]) and may_end_word(self.texts[number], begin)

    def _written(self, number, places):
        first, last = self.offsets[places[0]], self.offsets[places[-1]]
        if first is None or number >= len(self.texts):
            return "".join(self.tokens[index] for index in places)
        return self.texts[number][first[0] : last[1]].strip() or self.tokens[places[0]]


PARTS = fields(Encoding)


class LibraryEncoding(Encoding):
    """An `Encoding` of one text that asks the library's own encoding for a list when it is read:
    most models need the ids alone, and an object for each token takes longer than to find them.

    Args:
        encoding: the encoding of the library `tokenizers`, with special tokens.
        text: the text.
    """

    def __init__(self, encoding: Any, text: str):
        vars(self).update(token_ids=encoding.ids, texts=(text,), _encoding=encoding)  # it is frozen

    def __getattr__(self, name):  # of what is not yet read
        if name not in READ:
            raise AttributeError(name)
        value = READ[name](self._encoding)
        vars(self)[name] = value
        return value

    def __reduce__(self):
        return Encoding, tuple(getattr(self, part.name) for part in PARTS)


def _without_special(values, encoding):
    return [None if s else value for value, s in zip(values, encoding.special_tokens_mask)]


READ = {
    "tokens": lambda encoding: encoding.tokens,
    "offsets": lambda encoding: _without_special(encoding.offsets, encoding),
    "segment_ids": lambda encoding: encoding.type_ids,
    "word_ids": lambda encoding: _without_special(encoding.word_ids, encoding),
}


def of_words(
    weights: np.ndarray, target_counts: Sequence[int], source_counts: Sequence[int]
) -> np.ndarray:
    """Return the attention between words from that between their tokens.

        words(t, s) = mean over the tokens of t of the sum over the tokens of s

    Args:
        weights: (..., T, S), which may be padded after the last word.
        target_counts, source_counts: the number of tokens of each word.

    Returns:
        A new array (..., words of the target, words of the source).

    Raises:
        ValueError: if there are fewer tokens than the counts add up to.

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
    """Return how many tokens to keep of each text.

    The longer text loses its last token until both fit; of two equal ones the second.

    Args:
        who: the caller, for errors.
        lengths: the number of tokens of each text.
        num_special: the number of special tokens around them.
        max_length: the most tokens in all; None for any number.
        truncate: whether texts may be cut.

    Raises:
        ValueError: if the texts do not fit and may not be cut, or not even the special tokens do.

    Reference: https://github.com/google-research/bert (run_classifier._truncate_seq_pair)
    """
    fitted, total = list(lengths), sum(lengths) + num_special
    if max_length is None or total <= max_length:
        return fitted
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
    if len(fitted) == 1:
        return [room]
    if min(fitted) <= room // 2:  # the longer one alone is cut
        longer = fitted.index(max(fitted))
        fitted[longer] = room - fitted[1 - longer]
        return fitted
    return [room - room // 2, room // 2]

"""What a subword tokenizer makes of a text, and what it may be given."""

from dataclasses import dataclass


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
    """

    token_ids: list
    tokens: list
    offsets: list
    segment_ids: list
    word_ids: list

    def __len__(self):
        return len(self.token_ids)


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

"""The text of what is generated, whole or while it grows."""

import os

from ..text import Subwords

INCOMPLETE = "\ufffd"  # what stands for bytes that are no whole character


class Detokenizer:
    """Ids to the text that they add to a prompt's.

    Args:
        tokenizer: of `serving.text`.
        prompt_ids: of the prompt. Its text decides whether what follows begins with a space.
    """

    def __init__(self, tokenizer, prompt_ids=()):
        self._tokenizer, self._prompt_ids = tokenizer, [*prompt_ids]
        self._prompt = self._decode(self._prompt_ids)
        self._joins_words = isinstance(tokenizer, Subwords) and tokenizer.is_word_piece

    def text(self, token_ids):
        """Return the text of the ids behind the prompt."""
        whole = self._decode([*self._prompt_ids, *token_ids])
        return whole[len(os.path.commonprefix([whole, self._prompt])) :]

    def sure_text(self, token_ids):
        """Return what no further ids can change: whole characters; of WordPiece, whole words."""
        text = self.text(token_ids).rstrip(INCOMPLETE)
        return text[: max(text.rfind(" "), 0)] if self._joins_words else text

    def _decode(self, token_ids):
        known = len(self._tokenizer)  # a decoder's vocabulary may be padded
        return self._tokenizer.decode([each for each in token_ids if each < known])


def cut(text, stop):
    """Return a text up to the first of the strings that end it, and whether there is one."""
    places = [place for place in map(text.find, stop) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)


def pieces(found, detokenizer, stop=()):
    """Yield the text of the one source that is followed, piece by piece, as it becomes sure.

    Args:
        found: yields a `serving.decoding.Greedy` after each step.
        detokenizer: a `Detokenizer`.
        stop: strings that end the text, and are not part of it.
    """
    given, token_ids = "", []
    for each in found:
        token_ids = each.generated(0)
        text, stopped = cut(detokenizer.sure_text(token_ids), stop)
        if not stopped:
            text = text[: len(text) - _begun(text, stop)]
        if len(text) > len(given):
            yield text[len(given) :]
            given = text
    text, _ = cut(detokenizer.text(token_ids), stop)
    if len(text) > len(given):
        yield text[len(given) :]


def _begun(text, stop):
    """Return how many characters at the end of a text may be the begin of what ends it."""
    return max(
        (
            length
            for each in stop
            for length in range(1, min(len(each), len(text) + 1))
            if text.endswith(each[:length])
        ),
        default=0,
    )

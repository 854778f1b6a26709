"""The text of what is generated, whole or while it grows."""

import os

import numpy as np

from ..manifest import BundleError
from ..text import Subwords

INCOMPLETE = "\ufffd"  # what stands for bytes that are no whole character
WINDOW = 32  # tokens behind which no token changes a text


class Detokenizer:
    """Ids to the text that they add to a prompt's.

    Args:
        tokenizer: of `serving.text`.
        prompt_ids: of the prompt. Its text decides whether what follows begins with a space.
    """

    def __init__(self, tokenizer, prompt_ids=()):
        self._tokenizer, self._prompt_ids = tokenizer, [*prompt_ids]
        self._prompt = self.decode(self._prompt_ids)
        self.joins_words = isinstance(tokenizer, Subwords) and tokenizer.is_word_piece
        self._bytes = tokenizer.byte_ids if isinstance(tokenizer, Subwords) else frozenset()

    def text(self, token_ids):
        """Return the text of the ids behind the prompt."""
        whole = self.decode([*self._prompt_ids, *token_ids])
        return whole[len(os.path.commonprefix([whole, self._prompt])) :]

    def without_open_bytes(self, token_ids):
        """Return the ids without the last ones if these are bytes, which others may follow."""
        size = len(token_ids)
        while size and token_ids[size - 1] in self._bytes:
            size -= 1
        return token_ids[:size]

    def decode(self, token_ids):
        """Return the text of the ids by themselves."""
        known = len(self._tokenizer)  # a decoder's vocabulary may be padded
        return self._tokenizer.decode([each for each in token_ids if each < known])


class Growing:
    """The text of ids that grow at their end.

    Each step reads the last ids only, so that a long text takes no longer by the token than a short
    one: what stands `WINDOW` tokens back is settled, and kept as it is.

    Args:
        detokenizer: a `Detokenizer`.
    """

    def __init__(self, detokenizer):
        self._detokenizer = detokenizer
        self._num_settled, self._settled = 0, ""  # so many ids have this text
        self._seam = ""  # the text of the last of them, which is read again

    def read(self, token_ids):
        """Return the text of the ids, of which those of the call before are the first.

        Bytes at the end that are no whole character yet are left out.
        """
        token_ids = self._detokenizer.without_open_bytes(token_ids)
        text = self._joined(token_ids)
        if len(token_ids) >= self._num_settled + 2 * WINDOW:
            self._settle(token_ids, text)
        return text.rstrip(INCOMPLETE)

    def read_sure(self, token_ids):
        """Return what no further ids can change: of WordPiece, whole words.

        An apostrophe between spaces is still to be joined, and the word before with it: do n ' t.
        """
        text = self.read(token_ids)
        if not self._detokenizer.joins_words:
            return text
        return text[: max(text.removesuffix(" '").rfind(" "), 0)]

    def _joined(self, token_ids):
        if not self._num_settled:
            return self._detokenizer.text(token_ids)
        last = self._detokenizer.decode(token_ids[self._num_settled - WINDOW :])
        return self._settled + last[len(self._seam) :]

    def _settle(self, token_ids, text):
        """Keep the text of all ids but the last, unless it ends within a character."""
        before = self._num_settled, self._settled, self._seam
        own = token_ids[: len(token_ids) - WINDOW]
        settled = self._joined(own)
        is_whole = len(self._detokenizer.without_open_bytes(own)) == len(own)
        self._seam = self._detokenizer.decode(own[-WINDOW:])
        self._num_settled, self._settled = len(own), settled
        if settled.endswith(INCOMPLETE) or not is_whole or self._joined(token_ids) != text:
            self._num_settled, self._settled, self._seam = before


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
    given, token_ids, growing = "", [], Growing(detokenizer)
    for each in found:
        token_ids = each.generated(0)
        text, stopped = cut(growing.read_sure(token_ids), stop)
        if not stopped:
            text = text[: len(text) - _begun(text, stop)]
        if len(text) > len(given):
            yield text[len(given) :]
            given = text
    text, _ = cut(detokenizer.text(token_ids), stop)
    if len(text) > len(given):
        yield text[len(given) :]


def no_answer(pipeline):
    """Return the error that a pipeline raises whose graphs give no number."""
    return BundleError("the graphs gave no finite log-probability", where=pipeline, advice="")


def finite(found, pipeline):
    """Yield what `found` yields, a `Greedy` of one source, while its log-probability is a number.

    Raises:
        BundleError: in the name of the pipeline, if it is none.
    """
    for each in found:
        if not np.isfinite(each.totals[0]):
            raise no_answer(pipeline)
        yield each


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

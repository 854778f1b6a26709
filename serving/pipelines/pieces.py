"""The text of generated tokens, at the end or while they are generated."""

import os

from ..text import Subwords

INCOMPLETE = "\ufffd"  # the replacement of bytes that are no complete character
WINDOW = 32  # tokens; a new token does not change the text further back


class Detokenizer:
    """Decodes ids to the text that they add to a prompt.

    Args:
        tokenizer: a tokenizer of `serving.text`.
        prompt_ids: ids of the prompt. Its text decides whether the continuation begins with a
            space.
    """

    def __init__(self, tokenizer, prompt_ids=()):
        self._tokenizer, self._prompt_ids = tokenizer, [*prompt_ids]
        self._prompt = self.decode(self._prompt_ids)
        self.joins_words = isinstance(tokenizer, Subwords) and tokenizer.is_word_piece
        self._bytes = tokenizer.byte_ids if isinstance(tokenizer, Subwords) else frozenset()

    def text(self, token_ids):
        """Return the text of the ids after the prompt."""
        whole = self.decode([*self._prompt_ids, *token_ids])
        return whole[len(os.path.commonprefix([whole, self._prompt])) :]

    def without_open_bytes(self, token_ids):
        """Return the ids without bytes at the end, which may be part of an incomplete character."""
        size = len(token_ids)
        while size and token_ids[size - 1] in self._bytes:
            size -= 1
        return token_ids[:size]

    def decode(self, token_ids):
        """Return the text of the ids by themselves."""
        known = len(self._tokenizer)  # the decoder's vocabulary may be padded
        return self._tokenizer.decode([token_id for token_id in token_ids if token_id < known])


class Growing:
    """The text of a growing list of ids.

    Each step decodes the last ids only, so that the time for a token does not grow with the text:
    text that is `WINDOW` tokens back is settled and not decoded again.

    Args:
        detokenizer: a `Detokenizer`.
    """

    def __init__(self, detokenizer):
        self._detokenizer = detokenizer
        self._num_settled, self._settled = 0, ""  # the number of settled ids, and their text
        self._seam = ""  # the text of the last settled ids, which are decoded again

    def read(self, token_ids):
        """Return the text of the ids, which begin with the ids of the previous call.

        Bytes at the end that are an incomplete character are left out.
        """
        token_ids = self._detokenizer.without_open_bytes(token_ids)
        text = self._joined(token_ids)
        if len(token_ids) >= self._num_settled + 2 * WINDOW:
            self._settle(token_ids, text)
        return text.rstrip(INCOMPLETE)

    def read_final(self, token_ids):
        """Return the text that further ids can not change: for WordPiece, whole words.

        An apostrophe between spaces may still be joined, together with the word before it: do n '
        t.
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
        """Settle the text of all ids except the last ones, unless it ends within a character."""
        before = self._num_settled, self._settled, self._seam
        final = token_ids[: len(token_ids) - WINDOW]
        settled = self._joined(final)
        is_whole = len(self._detokenizer.without_open_bytes(final)) == len(final)
        self._seam = self._detokenizer.decode(final[-WINDOW:])
        self._num_settled, self._settled = len(final), settled
        if settled.endswith(INCOMPLETE) or not is_whole or self._joined(token_ids) != text:
            self._num_settled, self._settled, self._seam = before


def cut(text, stop):
    """Return a text up to the first stop string, and whether there is one."""
    places = [index for index in map(text.find, stop) if index >= 0]
    return (text[: min(places)], True) if places else (text, False)


class Pieces:
    """The text of a growing list of ids, in pieces, each as soon as it is final.

    Args:
        detokenizer: a `Detokenizer`.
        stop: strings that end the text, and are not part of it.
    """

    def __init__(self, detokenizer, stop=()):
        self._detokenizer, self._stop = detokenizer, stop
        self._growing, self._given = Growing(detokenizer), 0

    def read(self, token_ids):
        """Return what has become final, "" for nothing, of ids that may still grow."""
        text, stopped = cut(self._growing.read_final(token_ids), self._stop)
        if not stopped:
            text = text[: len(text) - _begun(text, self._stop)]
        return self._next(text)

    def rest(self, token_ids):
        """Return what is left of the text of all ids."""
        text, _ = cut(self._detokenizer.text(token_ids), self._stop)
        return self._next(text)

    def _next(self, text):
        piece = text[self._given :]
        self._given = max(self._given, len(text))
        return piece


def _begun(text, stop):
    """Return how many characters at the end of a text may be the start of a stop string."""
    return max(
        (
            length
            for string in stop
            for length in range(1, min(len(string), len(text) + 1))
            if text.endswith(string[:length])
        ),
        default=0,
    )

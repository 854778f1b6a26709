"""Subword regularisation: each pass over the training texts cuts words into other subwords.

A model that meets a word in several forms knows rare words better. Texts that are answered are cut
as before. Does not support tokens of whole words or characters, and byte-level BPE.
"""

import functools
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from seqkeras.serving.text import SentencePieces, Subwords, Tokenizer
from seqkeras.serving.text.sentence_pieces import require_library
from seqkeras.tokenizers.spelled import INNER, UNKNOWN

MOST_WORDS = 2**16  # whose ways to be cut are remembered
SHARPNESS = 0.02  # of a unigram model at rate 1


class VariedWordPieces:
    """MaxMatch-Dropout of WordPieces.

        from the left, the longest token that fits a word's rest is taken; one of several characters
        is passed over with probability `rate`

    Args:
        tokenizer: a WordPiece tokenizer.
        rate: from 0 to 1; the paper has 0.1 to 0.5.

    A row that becomes too long loses the last tokens of its longer text, as a tokenizer truncates.

    Call arguments:
        rows: an iterable of lists of token ids, with special tokens around texts.
        seed: seed of the draws.
        most: the most tokens of a row; None for any number.

    Returns:
        A list of (ids, places) for each row: `places` are the indices in the row of the tokens with
        which the ids' words begin.

    Raises:
        ValueError: if the tokenizer is no WordPiece.

    Reference: Hiraoka 2022, section 3, https://aclanthology.org/2022.coling-1.430
    """

    def __init__(self, tokenizer: Tokenizer, rate: float):
        require_varied(tokenizer)
        if not isinstance(tokenizer, Subwords):
            raise ValueError(f"VariedWordPieces: needs a WordPiece vocabulary, not {tokenizer!r}.")
        tokens = [tokenizer.token_of(index) for index in range(len(tokenizer))]
        self.rate = rate
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.tokens = tokens
        self.goes_on = [token.startswith(INNER) and token != INNER for token in tokens]
        special = {*tokenizer.special_tokens, *tokenizer.added_tokens, UNKNOWN}
        self.special = [token in special for token in tokens]
        self.is_whole = [len(token) == 1 or token in special for token in tokens]
        self.longest = max(map(len, tokens))
        self._ways = functools.lru_cache(MOST_WORDS)(self._ways_of)

    def __call__(
        self, rows: Iterable[Sequence[int]], seed: int, most: int | None = None
    ) -> list[tuple[list[int], list[int]]]:
        draw = random.Random(seed).random
        return [self._varied(row, draw, most) for row in rows]

    def _varied(self, row, draw, most):
        ids, places, start = [], [], 0
        goes_on, is_whole, size = self.goes_on, self.is_whole, len(row)
        while start < size:
            index, end, passed_over = row[start], start + 1, 0
            if (end == size or not goes_on[row[end]]) and not goes_on[index]:
                # A word of one token, as most are: its longest token is drawn here.
                if is_whole[index] or draw() >= self.rate:
                    ids.append(index)
                    places.append(start)
                    start = end
                    continue
                passed_over = 1
            while end < size and goes_on[row[end]]:
                end += 1
            word = tuple(row[start:end])
            cut = word if self.special[index] else self._cut(word, draw, passed_over)
            ids += cut
            places += [start] * len(cut)
            start = end
        fits = most is None or len(ids) <= most
        return (ids, places) if fits else self._cut_off(ids, places, most)

    def _cut_off(self, ids, places, most):
        """Return ids and places without the last tokens of the longest text, until they fit."""
        around = [position for position, index in enumerate(ids) if self.special[index]]
        ends = [*around, len(ids)]
        lengths = [end - start - 1 for start, end in zip([-1, *around], ends)]
        dropped = set()
        for _ in range(len(ids) - most):
            longest = max(range(len(lengths)), key=lengths.__getitem__)
            lengths[longest] -= 1
            ends[longest] -= 1
            dropped.add(ends[longest])
        kept = [position for position in range(len(ids)) if position not in dropped]
        return [ids[position] for position in kept], [places[position] for position in kept]

    def _cut(self, word, draw, passed_over=0):
        """Return the ids of a word that is cut anew; as it was, if what is left can not be cut.

        Args:
            passed_over: how many of the longest tokens have been passed over at the first place.
        """
        ways, start, ids = self._ways(word), 0, []
        while start < len(ways):
            here = ways[start] if start else ways[start][passed_over:]
            taken = (way for way in here if way[1] == 1 or draw() >= self.rate)
            index, length = next(taken, (None, 0))
            if index is None:
                return word
            ids.append(index)
            start += length
        return ids

    def _ways_of(self, word):
        """Return for each character of a word the (id, length) of tokens that begin there, the
        longest first."""
        text = "".join(self.tokens[index].removeprefix(INNER) for index in word)
        ways = []
        for start in range(len(text)):
            prefix = INNER if start or self.goes_on[word[0]] else ""
            ends = range(min(len(text), start + self.longest), start, -1)
            candidates = ((self.ids.get(prefix + text[start:end]), end - start) for end in ends)
            ways.append([(index, length) for index, length in candidates if index is not None])
        return ways


class VariedPieces:
    """Sampled cuts of SentencePiece's models.

        unigram:  p(cut) ~ (product of p(piece))^alpha, alpha = 0.02 / rate
        bpe:      each merge is left out with probability `rate`

    Args:
        tokenizer: a tokenizer with ids of its own.
        rate: above 0; at 0.1 both kinds give a quarter more tokens.
        special_tokens: with those around each text, as `analyze` sets them.

    Call arguments:
        texts: strings that the tokenizer can read.
        seed: seed of the draws.

    Returns:
        A list of ids for each text.

    Raises:
        ValueError: if the tokenizer has the ids of another vocabulary.

    Reference: Kudo 2018, section 3.3, https://arxiv.org/abs/1804.10959 (unigram); Provilkov et al.
    2020, section 3, https://arxiv.org/abs/1910.13267 (BPE)
    """

    def __init__(self, tokenizer: SentencePieces, rate: float, special_tokens: bool = False):
        require_varied(tokenizer)
        self._library = require_library()
        self._processor = self._library.SentencePieceProcessor(model_proto=tokenizer.model)
        self._alpha = rate if _is_bpe(tokenizer.model) else SHARPNESS / rate
        around = (tokenizer.prefix, tokenizer.suffix) if special_tokens else ((), ())
        self._prefix, self._suffix = ([*map(tokenizer.id_of, tokens)] for tokens in around)

    def __call__(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        with ThreadPoolExecutor(1) as thread:  # the library seeds its generator once in a thread
            drawn = thread.submit(self._drawn, texts, seed).result()
        return [[*self._prefix, *ids, *self._suffix] for ids in drawn]

    def _drawn(self, texts, seed):
        self._library.set_random_generator_seed(seed % 2**32)
        sampling = {"enable_sampling": True, "alpha": self._alpha, "nbest_size": -1}
        return self._processor.encode([*texts], **sampling, num_threads=1)


def _is_bpe(model):
    from sentencepiece import sentencepiece_model_pb2

    spec = sentencepiece_model_pb2.ModelProto.FromString(model).trainer_spec
    return spec.model_type == spec.BPE


def require_varied(tokenizer: Tokenizer) -> None:
    """Raise a `ValueError` unless texts can be cut in several ways."""
    is_pieces = isinstance(tokenizer, SentencePieces) and tokenizer.vocabulary is None
    if not is_pieces and not (isinstance(tokenizer, Subwords) and tokenizer.is_word_piece):
        other = " with the ids of another vocabulary" * isinstance(tokenizer, SentencePieces)
        raise ValueError(
            "needs tokens of the kinds word-piece, unigram or bpe, which cut a word in several "
            f"ways; received a {type(tokenizer).__name__}{other}."
        )

"""Tokens that a masked language model is asked for, drawn anew for every batch.

    of the tokens that are not special, a share is chosen: tokens, whole words or spans of words
    in place of a chosen one stands the mask (80 %), a random token (10 %), or itself (10 %)

Vectorised NumPy, which every backend reads: `keras_nlp.layers.MaskedLMMaskGenerator` and
`tensorflow_text.mask_language_model` need TensorFlow, and chose one token, or words, in a loop over
rows; `tests/seqkeras/data/test_masking.py` holds ours to their shares.

Differs from the paper's code: a random token is never a special one.

Reference: Devlin et al. 2019, section 3.1, task 1, https://arxiv.org/abs/1810.04805; whole words:
https://github.com/google-research/bert (create_pretraining_data.py); spans: Joshi et al. 2020,
section 3.1, https://arxiv.org/abs/1907.10529
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from seqkeras.serving.text import Subwords, Tokenizer

KINDS = ("tokens", "words", "spans")
IGNORED = -1  # the target of a place that holds no chosen token
MASKED, RANDOM = 0.8, 0.1
SPACES = ("\u0120", "\u2581")  # how byte-level BPE and SentencePiece write a space
# A span has l words with a probability of 0.2 * 0.8^(l - 1), up to 10 of them: 3.8 on average.
SPANS = 0.8 ** np.arange(10) / np.sum(0.8 ** np.arange(10))


class Masking:
    """(B, T) token ids to inputs with masks, (B, M) positions and their targets.

    Args:
        tokenizer: a `Subwords` that reads a mask in texts.
        kind: "tokens", "words" (all tokens of a word) or "spans" (of words).
        share: share of tokens that are chosen.

    Raises:
        ValueError: if the kind is unknown, or the vocabulary holds no mask.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import Masking
        >>> from seqkeras.tokenizers import learn_word_piece
        >>> tokenizer = learn_word_piece(["low lower lowest"] * 9, vocab_size=25, masks=True)
        >>> masking = Masking(tokenizer, kind="tokens", share=0.2)
        >>> token_ids, lengths = np.full((2, 10), 9), np.array([10, 5])
        >>> masked, positions, targets = masking(token_ids, lengths, np.random.default_rng(0))
        >>> targets.tolist()  # two of ten tokens, one of five
        [[9, 9], [9, -1]]
    """

    def __init__(self, tokenizer: Subwords, kind: str = "tokens", share: float = 0.15):
        if kind not in KINDS:
            raise ValueError(f"Masking: kind must be one of {', '.join(KINDS)}; received {kind!r}.")
        self.kind, self.share = kind, share
        self.mask_id = tokenizer.id_of(mask_token_of(tokenizer))
        tokens = [tokenizer.token_of(index) for index in range(len(tokenizer))]
        self.is_special = np.array([token in tokenizer.special_tokens for token in tokens])
        self.ordinary = np.flatnonzero(~self.is_special)
        if tokenizer.is_word_piece:
            self.continues = np.array([token.startswith("##") for token in tokens])
        else:
            self.continues = np.array([not token.startswith(SPACES) for token in tokens])

    def most(self, width: int) -> int:
        """Return M, how many tokens of a row of a width are chosen at most."""
        return max(1, round(self.share * width))

    def __call__(
        self, token_ids: np.ndarray, lengths: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, ...]:
        """Choose tokens.

        Args:
            token_ids: (B, T) integers.
            lengths: (B,) integers, of each row without padding.
            generator: a `numpy.random.Generator`.

        Returns:
            (B, T) token ids with masks; (B, M) positions, in order, 0 where a row has fewer chosen
            tokens; (B, M) targets, `IGNORED` there.
        """
        rows, width = token_ids.shape
        may_be = ~self.is_special[token_ids] & (np.arange(width) < lengths[:, None])
        begins = self._begins(token_ids, may_be, generator)
        unit = np.where(may_be, np.cumsum(begins, axis=1) - 1, -1)  # (B, T)
        columns = np.arange(width)
        within = columns - np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
        budget = np.minimum(np.maximum(np.round(self.share * may_be.sum(1)), 1), self.most(width))
        taken = self._taken(unit, budget.astype(int), generator)
        row = np.arange(rows)[:, None]
        chosen = may_be & (within < taken[row, unit])
        positions = np.argsort(~chosen, axis=1, kind="stable")[:, : self.most(width)]
        is_chosen = np.take_along_axis(chosen, positions, axis=1)
        targets = np.where(is_chosen, np.take_along_axis(token_ids, positions, 1), IGNORED)
        drawn = generator.random((rows, width))
        if self.kind == "spans":  # of one kind for a whole span
            drawn = np.take_along_axis(drawn, np.maximum(unit, 0), axis=1)
        others = self.ordinary[generator.integers(len(self.ordinary), size=(rows, width))]
        replaced = np.where(drawn < MASKED + RANDOM, others, token_ids)
        replaced = np.where(drawn < MASKED, self.mask_id, replaced)
        positions = np.where(is_chosen, positions, 0)
        return np.where(chosen, replaced, token_ids), positions, targets

    def _begins(self, token_ids, may_be, generator):
        """Return (B, T) booleans, where a token, a word or a span begins."""
        if self.kind == "tokens":
            return may_be
        behind_none = np.pad(~may_be[:, :-1], [(0, 0), (1, 0)], constant_values=True)
        words = may_be & (behind_none | ~self.continues[token_ids])
        if self.kind == "words":
            return words
        rows, width = words.shape
        lengths = 1 + generator.choice(len(SPANS), (rows, width), p=SPANS)
        starts = np.zeros((rows, width + 1), bool)  # by the number of the word
        np.put_along_axis(starts, np.minimum(np.cumsum(lengths, axis=1), width), True, axis=1)
        starts[:, 0] = True
        number = np.maximum(np.cumsum(words, axis=1) - 1, 0)
        return words & (behind_none | np.take_along_axis(starts, number, axis=1))

    def _taken(self, unit, budget, generator):
        """Return (B, T) integers: how many tokens of each unit are chosen. Units come in random
        order, each if it still fits; of spans the last one is cut."""
        rows, width = unit.shape
        row = np.arange(rows)
        sizes = np.zeros((rows, width), int)
        real = unit >= 0
        np.add.at(sizes, (np.nonzero(real)[0], unit[real]), 1)
        keys = np.where(sizes > 0, generator.random((rows, width)), np.inf)
        taken, room = np.zeros_like(sizes), budget.copy()
        for column in np.argsort(keys, axis=1).T:
            size = sizes[row, column]
            fits = np.minimum(size, room) if self.kind == "spans" else size * (size <= room)
            taken[row, column] = fits
            room -= fits
            if not room.any():
                break
        return taken


def mask_token_of(tokenizer: Tokenizer) -> str:
    """Return the mask of a vocabulary, [MASK] or <mask>.

    Raises:
        ValueError: if it holds none.
    """
    tokens = [token for token in ("[MASK]", "<mask>") if token in tokenizer.added_tokens]
    if not tokens:
        raise ValueError(
            "Masking: the vocabulary must hold [MASK] or <mask>, to be read in texts; it does not."
        )
    return tokens[0]

"""Sentences of validation with masks for some of their words, as FillMask is asked."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from seqkeras.data.masking import mask_token_of
from seqkeras.serving.text import Subwords

SEED = 0  # of the masks of validation, whatever the training's is


class MaskedSentence(NamedTuple):
    """A sentence of a validation document.

    Attributes:
        text: with masks for some of its words, or "" where no word is a token by itself.
        target: what these words were, a list of tokens.
        sentence: as it was.
        document: the number of the document that it is of.
    """

    text: str
    target: list
    sentence: str
    document: int


def masked_sentences(
    documents: Iterable[Any], tokenizer: Subwords, share: float, max_length: int
) -> list[MaskedSentence]:
    """Return the `MaskedSentence`s of documents; masks are the same each time.

    Args:
        documents: a list of lists of sentences.
        tokenizer: a `seqkeras.tokenizers.Subwords`.
        share: share of a sentence's tokens that are masked: words of one token each, at least one.
        max_length: the most tokens; a longer sentence gets no mask, nor does one that holds a mask.
    """
    generator, mask_token = np.random.default_rng(SEED), mask_token_of(tokenizer)
    masked, mask_id = [], tokenizer.id_of(mask_token)
    for number, document in enumerate(documents):
        for sentence in document:
            places, encoding = _places(sentence, tokenizer)
            text, target = "", []
            is_asked = mask_id not in encoding.token_ids  # a mask of the text has no target
            if places and is_asked and len(encoding) <= max_length:
                count = max(1, round(share * len(encoding)))
                chosen = sorted(generator.permutation(places)[:count].tolist())
                text = _masked(sentence, [encoding.offsets[index] for index in chosen], mask_token)
                ids = [encoding.token_ids[index] for index in chosen]
                target = [
                    tokenizer.decode([token_id], special_tokens=True).strip() for token_id in ids
                ]
            masked.append(MaskedSentence(text, target, sentence, number))
    return masked


def _places(sentence, tokenizer):
    """Return places of tokens that are a word each, and the encoding; [UNK] is not asked for."""
    encoding = tokenizer.analyze(sentence)
    counts = Counter(encoding.word_ids)
    places = [
        index
        for index, word in enumerate(encoding.word_ids)
        if word is not None
        and counts[word] == 1
        and tokenizer.token_of(encoding.token_ids[index]) not in tokenizer.special_tokens
        and sentence[slice(*encoding.offsets[index])].isalpha()
    ]
    return places, encoding


def _masked(sentence, offsets, mask_token):
    pieces, done = [], 0
    for start, end in offsets:
        pieces += [sentence[done:start], mask_token]
        done = end
    return "".join([*pieces, sentence[done:]])

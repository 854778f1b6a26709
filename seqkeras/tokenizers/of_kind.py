"""A tokenizer of a corpus, by the name of its kind: what a training learns from a user's file.

Whatever the kind, padding, the unknown, begin and end have the ids PAD, UNK, BOS and EOS, so that
one loss and one search suit all of them; `analyze` marks the end of a text where the kind has a
mark for it.
"""

import functools
import sys
from collections.abc import Iterable

from seqkeras.serving.text import CharacterTable, Tokenizer
from seqkeras.tokenizers.learn import learn_byte_pairs, learn_word_piece, learn_words
from seqkeras.tokenizers.learn_pieces import SPACES, learn_sentence_pieces


def _sentence_pieces(model):
    def learn(texts, vocab_size, lowercase):
        return learn_sentence_pieces(
            texts,
            vocab_size,
            model,
            suffix=("</s>",),
            # What is generated is written as in the texts: no full-width comma becomes another.
            rules=SPACES | (_small_letters() if lowercase else {}),
            character_coverage=1.0,
            hard_vocab_limit=False,
        )

    return learn


@functools.cache
def _small_letters():
    characters = map(chr, range(sys.maxunicode + 1))
    return {letter: letter.lower() for letter in characters if letter.lower() != letter}


TOKENIZERS = {
    "unigram": _sentence_pieces("unigram"),
    "bpe": _sentence_pieces("bpe"),
    "word-piece": lambda texts, size, lower: learn_word_piece(
        texts, size, lower, strip_accents=False
    ),
    "byte-pairs": lambda texts, size, _: learn_byte_pairs(texts, size, form="roberta"),
    "words": learn_words,
    "characters": lambda texts, size, _: CharacterTable.learn(texts),
}
"""Kind of a tokenizer -> what learns it: (texts, vocab_size, lowercase) -> tokenizer."""
KEEP_CASE = ("byte-pairs", "characters")


def learn_tokenizer(
    kind: str, texts: Iterable[str], vocab_size: int, lowercase: bool = False
) -> Tokenizer:
    """Learn a tokenizer of a kind.

    Args:
        kind: one of `TOKENIZERS`: "unigram" or "bpe", of SentencePiece; "word-piece"; "byte-pairs";
            "words"; or "characters".
        texts: an iterable of strings.
        vocab_size: the most tokens; "characters" takes every character of the texts.
        lowercase: whether capitals are read as small letters; accents stay.

    Returns:
        The tokenizer. Its `special_ids` are PAD, UNK, BOS and EOS.

    Raises:
        ValueError: if the kind is unknown or can not read capitals as small letters, or vocab_size
            is too small for the characters of the texts.

    Example:
        >>> from seqkeras.tokenizers import learn_tokenizer
        >>> tokenizer = learn_tokenizer("words", ["to be or not to be"], vocab_size=10)
        >>> tokenizer.encode("to be")
        [5, 4]
        >>> learn_tokenizer("characters", ["abc"], vocab_size=10)
        <CharacterTable: 7 characters>
    """
    if kind not in TOKENIZERS:
        raise ValueError(
            f"learn_tokenizer: kind must be one of {', '.join(TOKENIZERS)}; received {kind!r}."
        )
    if lowercase and kind in KEEP_CASE:
        raise ValueError(
            f"learn_tokenizer: {kind} keep their case; write the texts in lower case, or choose "
            "another kind."
        )
    return TOKENIZERS[kind](texts, vocab_size, lowercase)

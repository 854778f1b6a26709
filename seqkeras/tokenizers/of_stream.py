"""The tokenizer of a language model, learned on plain texts, by the name of its kind.

Beside `seqkeras.tokenizers.of_kind`: words are what stands between white space, as in WikiText's
files, and byte pairs have GPT-2's form, <|endoftext|> alone beside what is learned.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable

from seqkeras.serving.text import SPECIAL_TOKENS, CharacterTable, VectorizedWords
from seqkeras.serving.text.vectorized_words import SPACES
from seqkeras.tokenizers.learn import learn_byte_pairs
from seqkeras.tokenizers.learn_pieces import learn_sentence_pieces

BETWEEN = re.compile(f"[{SPACES}]+")


def learn_words_of_lines(texts: Iterable[str], vocab_size: int) -> VectorizedWords:
    """Return the table of the most frequent words between white space, as WikiText's files have
    them.

        id("<pad>"), id("<unk>"), id("<bos>"), id("<eos>") = 0, 1, 2, 3

    A word "<unk>" of the text is the table's entry, as are "<pad>", "<bos>" and "<eos>".

    Args:
        texts: an iterable of strings.
        vocab_size: how many words there may be, with the special ones.

    Returns:
        The `VectorizedWords`; `standardize` is None.
    """
    counts = Counter(itertools.chain.from_iterable(BETWEEN.split(text) for text in texts))
    for special in ("", *SPECIAL_TOKENS):
        counts.pop(special, None)
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return VectorizedWords([*SPECIAL_TOKENS, *words][:vocab_size], None, SPECIAL_TOKENS)


def _learn_pieces(model):
    def learn(texts, vocab_size):
        lines = (line for text in texts for line in text.split("\n") if line.strip())
        return learn_sentence_pieces(
            lines, vocab_size, model, character_coverage=1.0, hard_vocab_limit=False
        )

    return learn


STREAM_TOKENIZERS = {  # (texts, vocab_size) -> tokenizer
    "characters": lambda texts, _: CharacterTable.learn(texts),
    "words": learn_words_of_lines,
    "byte-pairs": learn_byte_pairs,
    "unigram": _learn_pieces("unigram"),
    "bpe": _learn_pieces("bpe"),
}

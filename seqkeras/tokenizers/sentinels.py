"""Tokenizers for damaged text: unigram pieces with a mask and with sentinels, in T5's form.

    <pad>, <unk>, <s>, </s>, pieces ..., <extra_id_0>, <extra_id_1>, ... <extra_id_99>, <mask>

A text is searched for the sentinels and the mask, which absorb the white space before them.
Sentinels are no special tokens, which decoding leaves out: answers show them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from seqkeras.serving.text import UNK, Subwords
from seqkeras.serving.text.sentence_pieces import SPACE
from seqkeras.serving.text.subwords import require_library
from seqkeras.tokenizers.learn_pieces import PIECE_NAMES, SPACES, learn_sentence_pieces, scores_of

MASK, NUM_SENTINELS = "<mask>", 100
SENTINELS = tuple(f"<extra_id_{number}>" for number in range(NUM_SENTINELS))


def learn_t5_pieces(texts: Sequence[str], vocab_size: int, lowercase: bool = False) -> Subwords:
    """Learn unigram pieces with the ids PAD, UNK, BOS and EOS, sentinels and a mask.

    Args:
        texts: a list of strings.
        vocab_size: the most pieces; sentinels and a mask follow them.
        lowercase: read capitals as small letters.

    Returns:
        The `Subwords`; decoding gives a text back with one space for several.

    Raises:
        ValueError: if vocab_size is too small for the characters of the texts.
        ImportError: if sentencepiece or the library tokenizers is not installed.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959; Raffel et al. 2020, section 2.2,
    https://arxiv.org/abs/1910.10683

    Example:
        >>> from seqkeras.tokenizers import learn_t5_pieces
        >>> tokenizer = learn_t5_pieces(["low lower lowest"] * 9, vocab_size=14)
        >>> tokenizer.decode(tokenizer.analyze("low <extra_id_0>").token_ids)  # absorbs spaces
        'low<extra_id_0>'
    """
    texts = [text.lower() for text in texts] if lowercase else texts
    learned = learn_sentence_pieces(
        texts, vocab_size, rules=SPACES, character_coverage=1.0, hard_vocab_limit=False
    )
    library = require_library()
    tokenizer = library.Tokenizer(library.models.Unigram(scores_of(learned), UNK))
    white_space = (r"[ \t\n\v\f\r]+", " "), (" $", "")
    changes: list[Any] = [
        library.normalizers.Replace(library.Regex(pattern), other) for pattern, other in white_space
    ]
    changes += [library.normalizers.Lowercase()] if lowercase else []
    tokenizer.normalizer = library.normalizers.Sequence(changes)
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
        [
            library.pre_tokenizers.Split("<", "isolated"),  # no </s> is read in a text
            library.pre_tokenizers.Metaspace(SPACE, "first"),
        ]
    )
    tokenizer.decoder = library.decoders.Metaspace(SPACE, "first")
    special = [(name, tokenizer.token_to_id(name)) for name in PIECE_NAMES.values()]
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=special
    )
    return with_sentinels(Subwords(tokenizer.to_str()))


def with_sentinels(tokenizer: Subwords) -> Subwords:
    """Return a tokenizer that reads a mask and sentinels in texts, and writes sentinels.

    Sentinels that the tokenizer has, such as T5's, keep their ids; others follow the vocabulary.

    Args:
        tokenizer: a `Subwords`.

    Returns:
        A new `Subwords`.

    Raises:
        ImportError: if the library tokenizers is not installed.

    Reference: Raffel et al. 2020, section 3.1.4, https://arxiv.org/abs/1910.10683

    Example:
        >>> from seqkeras.tokenizers import learn_word_piece, with_sentinels
        >>> plain = learn_word_piece(["low lower lowest"] * 9, vocab_size=25)
        >>> tokenizer = with_sentinels(plain)
        >>> len(tokenizer) - len(plain)  # 100 sentinels and <mask>
        101
        >>> tokenizer.decode(tokenizer.encode("low <extra_id_0>"))
        'low <extra_id_0>'
    """
    library = require_library()
    content = json.loads(tokenizer.to_json())
    for token in content["added_tokens"]:
        token["special"] &= token["content"] not in SENTINELS
    changed = library.Tokenizer.from_str(json.dumps(content))
    missing = [token for token in SENTINELS if token not in tokenizer.added_tokens]
    changed.add_tokens([_absorbing(token) for token in missing])
    if not tokenizer.added_tokens & {"[MASK]", MASK}:
        changed.add_special_tokens([_absorbing(MASK)])
    return Subwords(changed.to_str())


def _absorbing(token):
    return require_library().AddedToken(token, lstrip=True, normalized=False)


def sentinel_ids(tokenizer: Subwords) -> list[int]:
    """Return the ids of the sentinels, in their order.

    Args:
        tokenizer: a `Subwords` of `learn_t5_pieces` or `with_sentinels`.

    Returns:
        100 integers, of <extra_id_0>, <extra_id_1>, ...

    Raises:
        ValueError: if the vocabulary lacks a sentinel.

    Reference: Raffel et al. 2020, section 3.1.4, https://arxiv.org/abs/1910.10683

    Example:
        >>> from seqkeras.tokenizers import learn_t5_pieces, sentinel_ids
        >>> ids = sentinel_ids(learn_t5_pieces(["low lower lowest"] * 9, vocab_size=14))
        >>> len(ids), ids[0]
        (100, 14)
    """
    return [tokenizer.id_of(sentinel) for sentinel in SENTINELS]

"""Vocabularies from a corpus: WordPiece, byte-level BPE, words; `learn_pieces` has SentencePiece.

The same texts make the same vocabulary every time. It leaves out sampling: every text is read.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from seqkeras.serving.text.byte_pairs import byte_pairs
from seqkeras.serving.text.subwords import Subwords
from seqkeras.serving.text.subwords import require_library as require_tokenizers
from seqkeras.serving.text.vocabularies import SPECIAL_TOKENS as SPECIAL_WORDS
from seqkeras.serving.text.word_piece import SPECIAL_TOKENS, word_piece
from seqkeras.serving.text.words import WordTable
from seqkeras.tokenizers.encode_all import LONGEST_PART

AT_ONCE = 1_000  # times that a word stands in a text
SPECIAL_BYTE_PAIRS = {  # the first ids of a learned vocabulary; those that are set after it
    "gpt2": ((), ("<|endoftext|>",)),
    "roberta": (("<pad>", "<unk>", "<s>", "</s>", "<mask>"), ()),
}


class NoRoomError(ValueError):
    """A vocabulary has no room for its characters and special tokens.

    Attributes:
        needed: how many tokens these are.
        vocab_size: how many there may be.
    """

    def __init__(self, who: str, needed: int, vocab_size: int):
        super().__init__(
            f"{who}: vocab_size must be at least {needed}, for the characters and special tokens "
            f"alone; received {vocab_size}."
        )
        self.needed, self.vocab_size = needed, vocab_size


def learn_word_piece(
    texts: Iterable[str],
    vocab_size: int,
    lowercase: bool = True,
    min_count: int = 2,
    strip_accents: bool | None = None,
    masks: bool = False,
) -> Subwords:
    """Learn the vocabulary of `seqkeras.serving.text.word_piece`.

    A special token that is written in a text is text: "[SEP]" is [, SEP and ].

    Args:
        texts: an iterable of strings.
        vocab_size: the most tokens, special tokens and all characters included.
        lowercase: see `word_piece`.
        min_count: how often two tokens must stand together to become one.
        strip_accents: see `word_piece`.
        masks: read "[MASK]" in a text as the mask, which `FillMask` fills.

    Returns:
        The `Subwords`.

    Raises:
        NoRoomError: if the characters alone are more than vocab_size.
        ImportError: if the library tokenizers is not installed.

    Reference: Schuster and Nakajima 2012, "Japanese and Korean voice search", section 3; tokens are
    merged by how often they meet, as the library does, and not by likelihood.

    Example:
        >>> from seqkeras.tokenizers import learn_word_piece
        >>> tokenizer = learn_word_piece(["low lower lowest"] * 9, vocab_size=25)
        >>> tokenizer.analyze("Lower lows").tokens
        ['[CLS]', 'lower', 'low', '##s', '[SEP]']
    """
    tokenizers = require_tokenizers()
    special = list(SPECIAL_TOKENS)
    options: dict[str, Any] = {"lowercase": lowercase, "strip_accents": strip_accents}
    # The library learns parts of a token that it finds in texts, as it were a word: [M and ##K].
    untrained = word_piece(special, **options, in_texts=())
    # The library numbers "##" and a character as it meets them, in an order that changes from run
    # to run, and breaks ties by number: so they are numbered before.
    words = _counted_words(untrained, texts)
    inner = {character for word in words for character in word[1:]}
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_count,
        special_tokens=special + [f"##{character}" for character in sorted(inner)],
        show_progress=False,
    )
    library = tokenizers.Tokenizer(tokenizers.models.WordPiece({}, unk_token=special[1]))
    library.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    library.train_from_iterator(_repeated(words), trainer)
    vocabulary = library.get_vocab()
    _require_room("learn_word_piece", len(vocabulary), vocab_size)
    tokens = sorted(vocabulary, key=vocabulary.get)
    return word_piece(tokens, **options, in_texts=("[MASK]",) if masks else ())


def _counted_words(tokenizer, texts):
    """Return word -> how often the tokenizer finds it in texts, a `Counter`; what stands between
    two spaces is read once."""
    parts, words = Counter(), Counter()
    for text in texts:
        of_text = text.split(" ")
        if len(max(of_text, key=len)) > LONGEST_PART:  # such hardly come twice
            words.update(itertools.chain.from_iterable(map(tokenizer.words, of_text)))
        else:
            parts.update(of_text)
    for part, count in parts.items():
        for word in tokenizer.words(part):
            words[word] += count
    return words


def _repeated(words):
    """Yield texts that hold each word as often as it is counted, which take the library less time
    than those that it was counted in."""
    for word, count in words.items():
        for start in range(0, count, AT_ONCE):
            yield f"{word} " * min(AT_ONCE, count - start)


def learn_byte_pairs(
    texts: Iterable[str],
    vocab_size: int,
    min_count: int = 2,
    form: str = "gpt2",
    masks: bool = False,
) -> Subwords:
    """Learn the vocabulary and the merges of `seqkeras.serving.text.byte_pairs`.

    A special token that is written in a text is text: "</s>" is its bytes.

    Args:
        texts: an iterable of strings.
        vocab_size: the most tokens: 256 bytes, special tokens, and merged tokens.
        min_count: how often two tokens must stand together to become one.
        form: "gpt2", whose last token is <|endoftext|>; or "roberta", whose first five are <pad>,
            <unk>, <s>, </s> and <mask>, so that padding has the id 0.
        masks: read "<mask>" in a text as the mask, which `FillMask` fills.

    Returns:
        The `Subwords`.

    Raises:
        ValueError: if the form is unknown.
        NoRoomError: if there is no room for bytes and special tokens.
        ImportError: if the library tokenizers is not installed.

    Reference: Sennrich et al. 2016, section 3.2, https://arxiv.org/abs/1508.07909

    Example:
        >>> from seqkeras.tokenizers import learn_byte_pairs
        >>> tokenizer = learn_byte_pairs(["low lower lowest"] * 9, vocab_size=262)
        >>> tokenizer.decode(tokenizer.encode("naïve 東京"))  # any text: 256 tokens are bytes
        'naïve 東京'
    """
    tokenizers = require_tokenizers()
    if form not in SPECIAL_BYTE_PAIRS:
        raise ValueError(
            f"learn_byte_pairs: form must be one of {', '.join(SPECIAL_BYTE_PAIRS)}; "
            f"received {form!r}."
        )
    first, last = SPECIAL_BYTE_PAIRS[form]
    num_special = len(first) + len(last)
    _require_room("learn_byte_pairs", 256 + num_special, vocab_size)
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size - num_special,
        min_frequency=min_count,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(texts, trainer)
    learned = json.loads(library.to_str())["model"]
    tokens = [*first, *sorted(learned["vocab"], key=learned["vocab"].get), *last]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    return byte_pairs(vocabulary, learned["merges"], form, ("<mask>",) if masks else ())


def learn_words(
    texts: Iterable[str], vocab_size: int, lowercase: bool = False, min_count: int = 1
) -> WordTable:
    """Learn a `seqkeras.serving.text.WordTable` of the most frequent words.

        id("<pad>"), id("<unk>"), id("<bos>"), id("<eos>") = 0, 1, 2, 3

    These are the ids of a `CharacterTable`: texts of words can be generated, too.

    Args:
        texts: an iterable of strings.
        vocab_size: the most words, special tokens included.
        lowercase: see `WordTable`.
        min_count: how often a word must come to be in the table.

    Returns:
        The `WordTable`.

    Raises:
        NoRoomError: if vocab_size is under 5.

    Example:
        >>> from seqkeras.tokenizers import learn_words
        >>> table = learn_words(["to be or not to be"], vocab_size=6)
        >>> table.words  # the two most frequent
        ('<pad>', '<unk>', '<bos>', '<eos>', 'be', 'to')
        >>> table.encode("to be happy")
        [5, 4, 1]
    """
    _require_room("learn_words", len(SPECIAL_WORDS) + 1, vocab_size)
    table = WordTable([*WordTable.special_tokens], lowercase)
    words = (text[start:end] for text in texts for start, end in table.places(text))
    learned = WordTable.learn(words, lowercase, min_count).words[len(WordTable.special_tokens) :]
    return WordTable([*SPECIAL_WORDS, *learned][:vocab_size], lowercase, SPECIAL_WORDS)


def _require_room(who, needed, vocab_size):
    if needed > vocab_size:
        raise NoRoomError(who, needed, vocab_size)

"""Vocabularies from a corpus: WordPiece, byte-level BPE, SentencePiece.

The same texts make the same vocabulary every time. It leaves out sampling: every text is read.
"""

import io
import json

from serving.text.byte_pairs import SPECIAL_TOKENS as SPECIAL_BYTE_PAIRS
from serving.text.byte_pairs import byte_pairs
from serving.text.sentence_pieces import SentencePieces
from serving.text.sentence_pieces import require_library as require_sentencepiece
from serving.text.subwords import require_library as require_tokenizers
from serving.text.vocabularies import BOS, EOS, PAD, UNK
from serving.text.word_piece import SPECIAL_TOKENS, word_piece

MODELS = ("unigram", "bpe")
PIECES = {"pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS}  # the library's names


def learn_word_piece(texts, vocab_size, lowercase=True, min_count=2):
    """Learn the vocabulary of `serving.text.word_piece`.

    Args:
        texts: a list of strings; it is read twice.
        vocab_size: how many tokens there may be, with the special ones and every character.
        lowercase: as in `word_piece`.
        min_count: how often two tokens must stand together to become one.

    Returns:
        The `Subwords`.

    Raises:
        ValueError: if the characters alone are more than vocab_size.

    Reference: Schuster and Nakajima 2012, "Japanese and Korean voice search", section 3; tokens are
    merged by how often they meet, as the library does, and not by likelihood.
    """
    tokenizers = require_tokenizers()
    special = list(SPECIAL_TOKENS)
    untrained = word_piece(special, lowercase)
    # The library numbers "##" and a character as it meets them, in an order that changes from run
    # to run, and breaks ties by number: so they are numbered before.
    inner = {
        character for text in texts for word in untrained.words(text) for character in word[1:]
    }
    inner = [f"##{character}" for character in sorted(inner)]
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_count,
        special_tokens=special + inner,
        show_progress=False,
    )
    library = tokenizers.Tokenizer.from_str(untrained.to_json())
    library.train_from_iterator(texts, trainer)
    vocabulary = library.get_vocab()
    _require_room("learn_word_piece", len(vocabulary), vocab_size)
    return word_piece(sorted(vocabulary, key=vocabulary.get), lowercase)


def learn_byte_pairs(texts, vocab_size, min_count=2):
    """Learn the vocabulary and the merges of `serving.text.byte_pairs`, in the form of GPT-2.

    Args:
        texts: an iterable of strings.
        vocab_size: how many tokens there may be: 256 bytes, <|endoftext|>, and what is merged.
        min_count: how often two tokens must stand together to become one.

    Returns:
        The `Subwords`.

    Raises:
        ValueError: if vocab_size is under 257.

    Reference: Sennrich et al. 2016, section 3.2, https://arxiv.org/abs/1508.07909
    """
    tokenizers = require_tokenizers()
    _require_room("learn_byte_pairs", 257, vocab_size)
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=min_count,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(texts, trainer)
    learned = json.loads(library.to_str())["model"]
    [end] = SPECIAL_BYTE_PAIRS["gpt2"]
    return byte_pairs({**learned["vocab"], end: len(learned["vocab"])}, learned["merges"])


def learn_sentence_pieces(texts, vocab_size, model="unigram", suffix=(), **options):
    """Learn a `serving.text.SentencePieces` with ids of its own.

        id("<pad>"), id("<unk>"), id("<s>"), id("</s>") = 0, 1, 2, 3

    as a `CharacterTable` has them, unless an option says which ids they have.

    Args:
        texts: an iterable of strings.
        vocab_size: the number of pieces, with <pad>, <unk>, <s> and </s>.
        model: "unigram" or "bpe".
        suffix: tokens that `analyze` sets behind a text, as "</s>".
        options: more of the library's own, as `character_coverage`. Who gives one of `pad_id`,
            `unk_id`, `bos_id` and `eos_id` gets the library's defaults for the others.

    Returns:
        The `SentencePieces`.

    Raises:
        ValueError: if the model is unknown, or the texts do not make so many pieces.

    Reference: Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226; "unigram": Kudo 2018,
    https://arxiv.org/abs/1804.10959
    """
    if model not in MODELS:
        raise ValueError(
            f"learn_sentence_pieces: model must be one of {', '.join(MODELS)}; received {model!r}."
        )
    sentencepiece, written = require_sentencepiece(), io.BytesIO()
    ids = {} if set(PIECES) & set(options) else PIECES
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=written,
            vocab_size=vocab_size,
            model_type=model,
            minloglevel=2,  # nothing but errors
            **ids,
            **options,
        )
    except RuntimeError as error:
        raise ValueError(f"learn_sentence_pieces: {error}") from error
    return SentencePieces(written.getvalue(), suffix=suffix)


def _require_room(who, needed, vocab_size):
    if needed > vocab_size:
        raise ValueError(
            f"{who}: vocab_size must be at least {needed}, for the characters and special tokens "
            f"alone; received {vocab_size}."
        )

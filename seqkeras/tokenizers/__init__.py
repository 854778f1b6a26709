"""The tokenizers of `serving.text` under the library's name, and learning of vocabularies."""

from seqkeras.serving.text import (
    BOS,
    EOS,
    PAD,
    UNK,
    CharacterTable,
    Encoding,
    SentencePieces,
    Subwords,
    Tokenizer,
    VectorizedWords,
    WordTable,
    byte_pairs,
    pad,
    read_byte_pairs,
    read_tokenizer,
    read_vocabulary,
    word_piece,
    word_places,
)
from seqkeras.tokenizers.encode_all import encode_all
from seqkeras.tokenizers.keras_nlp_tokenizers import from_keras_nlp
from seqkeras.tokenizers.learn import learn_byte_pairs, learn_word_piece, learn_words
from seqkeras.tokenizers.learn_pieces import learn_sentence_pieces
from seqkeras.tokenizers.of_kind import TOKENIZERS, learn_tokenizer
from seqkeras.tokenizers.sentinels import learn_t5_pieces, sentinel_ids, with_sentinels
from seqkeras.tokenizers.special import SpecialIds, special_ids
from seqkeras.tokenizers.spelled import spelled_pieces
from seqkeras.tokenizers.text_vectorization import from_text_vectorization

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "TOKENIZERS",
    "UNK",
    "CharacterTable",
    "Encoding",
    "SentencePieces",
    "SpecialIds",
    "Subwords",
    "Tokenizer",
    "VectorizedWords",
    "WordTable",
    "byte_pairs",
    "encode_all",
    "from_keras_nlp",
    "from_text_vectorization",
    "learn_byte_pairs",
    "learn_sentence_pieces",
    "learn_t5_pieces",
    "learn_tokenizer",
    "learn_word_piece",
    "learn_words",
    "pad",
    "read_byte_pairs",
    "read_tokenizer",
    "read_vocabulary",
    "sentinel_ids",
    "special_ids",
    "spelled_pieces",
    "with_sentinels",
    "word_piece",
    "word_places",
]

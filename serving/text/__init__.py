"""Strings to token ids and back: the one tokenizer of training, export and serving.

The libraries `tokenizers` and `sentencepiece` are imported when a tokenizer of theirs is made.
"""

from .byte_pairs import byte_pairs, read_byte_pairs
from .characters import whole_characters
from .encoding import Encoding
from .files import read_tokenizer
from .packing import pad
from .patterns import Pattern
from .sentence_pieces import SentencePieces
from .subwords import Subwords, tidy
from .token_automaton import UNREACHABLE, TokenAutomaton, text_trees
from .token_texts import token_texts
from .tokenizer import Tokenizer
from .turns import Turns, checked_messages
from .vectorized_words import VectorizedWords
from .vocabularies import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, CharacterTable
from .word_piece import read_vocabulary, word_piece
from .words import WordTable, word_places

__all__ = [
    "BOS",
    "EOS",
    "UNREACHABLE",
    "PAD",
    "SPECIAL_TOKENS",
    "UNK",
    "CharacterTable",
    "Encoding",
    "Pattern",
    "SentencePieces",
    "Subwords",
    "TokenAutomaton",
    "Tokenizer",
    "Turns",
    "VectorizedWords",
    "WordTable",
    "byte_pairs",
    "checked_messages",
    "pad",
    "read_byte_pairs",
    "read_tokenizer",
    "read_vocabulary",
    "tidy",
    "text_trees",
    "token_texts",
    "whole_characters",
    "word_piece",
    "word_places",
]

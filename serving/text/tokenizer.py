"""The type of a tokenizer in annotations."""

from typing import TypeAlias

from .sentence_pieces import SentencePieces
from .subwords import Subwords
from .vectorized_words import VectorizedWords
from .vocabularies import CharacterTable
from .words import WordTable

Tokenizer: TypeAlias = CharacterTable | SentencePieces | Subwords | VectorizedWords | WordTable
"""Any tokenizer of a bundle."""

"""Strings to token ids and back: the one tokenizer of training, export and serving."""

from .packing import pad
from .vocabularies import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, CharacterTable

__all__ = ["BOS", "EOS", "PAD", "SPECIAL_TOKENS", "UNK", "CharacterTable", "pad"]

"""The one tokenizer, that of `serving.text`, under the library's name."""

from serving.text.packing import pad
from serving.text.vocabularies import BOS, EOS, PAD, UNK, CharacterTable

__all__ = ["BOS", "EOS", "PAD", "UNK", "CharacterTable", "pad"]

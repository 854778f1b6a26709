"""Embeddings: from ids to vectors."""

from seqkeras.embeddings.character import CharacterCNN
from seqkeras.embeddings.highway import Highway
from seqkeras.embeddings.position import LearnedPositions, SinusoidalPositions
from seqkeras.embeddings.token import TokenEmbedding
from seqkeras.embeddings.word_characters import WordCharacters

__all__ = [
    "CharacterCNN",
    "Highway",
    "LearnedPositions",
    "SinusoidalPositions",
    "TokenEmbedding",
    "WordCharacters",
]

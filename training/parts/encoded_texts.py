"""Texts that one tokenizer reads: that of an encoder, or WordPieces that are learned from them."""

import functools

from seqkeras.serving.text import Tokenizer
from seqkeras.serving.text.word_piece import SPECIAL_TOKENS, word_piece
from seqkeras.tokenizers import learn_word_piece
from seqkeras.training.parts.pretrained import Pretrained, known_tokenizer
from seqkeras.training.parts.vocabularies import learned_from
from seqkeras.training.task import Reading

MOST_WORDS = 2**16  # of which is remembered whether they have a token


class EncodedTexts(Reading):
    """Base of what reads texts by one tokenizer.

    Attributes:
        pretrained: a `Pretrained`, where an encoder is fine-tuned; else None.
    """

    pretrained: Pretrained | None = None

    def read_pretrained(self) -> None:
        """Read the encoder of --pretrained, if it is given."""
        if self.options.pretrained is not None:
            self.pretrained = Pretrained.read(self.options.pretrained)

    def tokenizer_of(self, texts: list[str]) -> dict[str, Tokenizer]:
        """Return a dictionary: role -> tokenizer, that of the encoder or one that is learned on a
        list of texts."""
        if self.pretrained:
            return {"text": self.pretrained.tokenizer}
        with learned_from(self.options.file):
            tokenizer = learn_word_piece(texts, self.options.vocab_size, self.options.lowercase)
        return {"text": tokenizer}

    def has_token(self, text: str) -> bool:
        """Return whether the tokenizer finds a token in a text, known before one is learned."""
        return any(map(self._is_read, text.split()))

    @functools.cached_property
    def _is_read(self):
        """A function: word -> whether it has a token. WordPieces that are learned give a token to
        each word that is left of a text, if only [UNK]."""
        tokenizer = known_tokenizer(self)
        if tokenizer is None:
            tokenizer = word_piece(SPECIAL_TOKENS, self.options.lowercase, in_texts=())
        return functools.lru_cache(MOST_WORDS)(lambda word: bool(tokenizer.encode(word)))

"""The ids of a tokenizer's special tokens: padding, start, end and unknown.

Only this file knows their names; models, runs and searches take the ids from here.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras

    from seqkeras.serving.text import Tokenizer

NAMES = {  # the first one in the vocabulary counts
    "padding_id": ("<pad>", "[PAD]"),
    "unknown_id": ("<unk>", "[UNK]"),
    "start_id": ("<bos>", "<s>", "[CLS]", "<|endoftext|>"),
    "end_id": ("<eos>", "</s>", "[SEP]", "<|endoftext|>"),
}


@dataclasses.dataclass(frozen=True)
class SpecialIds:
    """The result of `special_ids`; None for a token that is not in the vocabulary.

    Args:
        padding_id: id of the token after a text's end.
        unknown_id: id of what is not in the vocabulary.
        start_id: id of the token that begins a text.
        end_id: id of the token that ends it.

    Example:
        >>> from seqkeras.tokenizers import SpecialIds
        >>> SpecialIds(padding_id=0, unknown_id=1, start_id=2, end_id=3).never_generated
        (0, 1, 2)
        >>> SpecialIds(None, None, start_id=7, end_id=7).never_generated  # GPT-2 has one for both
        ()
    """

    padding_id: int | None
    unknown_id: int | None
    start_id: int | None
    end_id: int | None

    @property
    def never_generated(self) -> tuple[int, ...]:
        """Ids that no answer holds: padding, unknown, start; never the end id."""
        ids = {self.padding_id, self.unknown_id, self.start_id} - {self.end_id}
        return tuple(sorted(index for index in ids if index is not None))


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Return the `SpecialIds` of a tokenizer.

    Args:
        tokenizer: a tokenizer of `seqkeras.tokenizers`.

    Returns:
        The ids; None for a token that the vocabulary lacks.

    Example:
        >>> from seqkeras.tokenizers import CharacterTable, learn_word_piece, special_ids
        >>> special_ids(CharacterTable.learn(["abc"]))
        SpecialIds(padding_id=0, unknown_id=1, start_id=2, end_id=3)
        >>> special_ids(learn_word_piece(["low lower"] * 9, vocab_size=25)).start_id  # [CLS]
        2
    """
    return SpecialIds(**{field: _first(tokenizer, names) for field, names in NAMES.items()})


def end_problem(model: keras.Model, end_id: int) -> str | None:
    """Return the reason why no text of the model would end, or None.

    Args:
        model: an encoder-decoder, or a language model.
        end_id: the id that ends a text.
    """
    never_generated = list(getattr(model, "never_generated", ()))
    if end_id not in never_generated:
        return None
    return (
        f"end_id must be an id that the model may generate; received {end_id}, and never_generated "
        f"is {never_generated}: make the model with "
        "never_generated=seqkeras.tokenizers.special_ids(tokenizer).never_generated"
    )


def _first(tokenizer, names):
    for name in names:
        try:
            return tokenizer.id_of(name)
        except ValueError:  # no such token
            continue
    return None

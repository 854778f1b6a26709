"""SentencePiece models in a graph, by the kernels of tensorflow-text.

The kernel's model is an attribute of its operator, which needs no initialisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tensorflow_text as tf_text
from sentencepiece import sentencepiece_model_pb2

from seqkeras.export.text_graphs.characters import in_code_points
from seqkeras.export.text_graphs.lookup import StringTable
from seqkeras.export.text_graphs.row_errors import none_of
from seqkeras.export.text_graphs.tokens import TextGraph, Tokens
from seqkeras.serving.text.sentence_pieces import LANGUAGE_CODE, SPECIAL_TOKENS

if TYPE_CHECKING:
    from seqkeras.serving.text import SentencePieces
    from seqkeras.tensors import Tensor

UNKNOWN, CONTROL = 2, 3  # sentencepiece_model.proto, ModelProto.SentencePiece.Type
UNIGRAM = 1  # TrainerSpec.ModelType


class Pieces(TextGraph):
    """The tokenizer of a `SentencePieces`.

    It has ties if two segmentations of a text may have the same score. The kernel and the Python
    library, which round sums differently, may then choose different ones.
    """

    def __init__(self, tokenizer: SentencePieces):
        self._model, self._vocabulary = tokenizer.model, tokenizer.vocabulary
        if self._vocabulary is not None:
            self._ids = StringTable(self._vocabulary, self._vocabulary["<unk>"])
        model = sentencepiece_model_pb2.ModelProto.FromString(self._model)  # type: ignore[attr-defined]
        self.pieces = _decoded(model, tokenizer)
        self.has_ties = model.trainer_spec.model_type == UNIGRAM
        spaces = model.normalizer_spec
        one_or_none = "^▁" if spaces.add_dummy_prefix else "^$"
        self._begin = "^▁+" if spaces.remove_extra_whitespaces else one_or_none

    def split(self, texts: Any) -> Tokens:
        if self._vocabulary is None:
            ids, starts, ends = self._kernel(tf.int32).tokenize_with_offsets(texts)
            return Tokens(ids, *in_code_points(texts, starts, ends), none_of(texts))
        codes = tf.strings.regex_replace(texts, f"(?s)^({LANGUAGE_CODE.pattern})?.*$", r"\1")
        width = tf.strings.length(codes)
        rest = tf.strings.substr(texts, width, tf.strings.length(texts))
        pieces, starts, ends = self._kernel(tf.string).tokenize_with_offsets(rest)
        width = tf.cast(width, tf.int64)
        pieces = tf.concat([_where(width > 0, codes), pieces], axis=1)
        starts = tf.concat([_where(width > 0, 0 * width), starts + width[:, None]], axis=1)
        ends = tf.concat([_where(width > 0, width), ends + width[:, None]], axis=1)
        ids = pieces.with_values(self._ids(pieces.values))
        return Tokens(ids, *in_code_points(texts, starts, ends), none_of(texts))

    def tidied(self, joined: Tensor) -> Tensor:
        joined = tf.strings.regex_replace(joined, self._begin, "")
        return tf.strings.regex_replace(joined, "▁", " ")

    def _kernel(self, out_type):
        return tf_text.SentencepieceTokenizer(self._model, out_type=out_type)


def _where(chosen, values):
    """Return ragged (B, 1 or 0): the values of the chosen rows."""
    values = tf.boolean_mask(values, chosen)
    return tf.RaggedTensor.from_row_lengths(values, tf.cast(chosen, tf.int64))


def _decoded(model, tokenizer):
    """Return the text of each id, as in `SentencePieces.decode`."""
    if tokenizer.vocabulary is None:
        surfaces = {UNKNOWN: model.trainer_spec.unk_surface, CONTROL: ""}
        return [surfaces.get(piece.type, piece.piece) for piece in model.pieces]
    pieces = [""] * len(tokenizer)
    for token, token_id in tokenizer.vocabulary.items():
        pieces[token_id] = "" if token in SPECIAL_TOKENS else token
    return pieces

"""SentencePiece models in a graph, as `serving.text.SentencePieces` runs them.

Leaves out pieces that are bytes or the user's own, and spaces as suffixes.
"""

import numpy as np
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from export.text_graphs.characters import characters, shifted
from export.text_graphs.charsmap import BAR, Normalizer
from export.text_graphs.lookup import PairTable, Trie
from export.text_graphs.merging import Parts, merged
from export.text_graphs.tokens import TextGraph, Tokens
from serving.text.sentence_pieces import LANGUAGE_CODE, SPECIAL_TOKENS

UNIGRAM, BPE = 1, 2  # sentencepiece_model.proto, TrainerSpec.ModelType
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # ModelProto.SentencePiece.Type
PENALTY = 10.0  # what an unknown character costs beyond the rarest piece


class Pieces(TextGraph):
    """The tokenizer of a `SentencePieces`.

    Args:
        tokenizer: it.

    Raises:
        ValueError: if its model is none of unigrams or byte pairs, or holds pieces left out here.

    Reference: Kudo 2018, section 3.2, https://arxiv.org/abs/1804.10959; Sennrich et al. 2016,
    section 3.2, https://arxiv.org/abs/1508.07909
    """

    most_characters = 32

    def __init__(self, tokenizer):
        model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
        _require(model)
        self._normalize = Normalizer(model.normalizer_spec)
        self._pieces = [each.piece for each in model.pieces]
        [self._unknown] = [i for i, each in enumerate(model.pieces) if each.type == UNKNOWN]
        self._normal = {i: each for i, each in enumerate(model.pieces) if each.type == NORMAL}
        self.merges = model.trainer_spec.model_type == BPE
        self._split = _Merges(self._normal) if self.merges else _Unigrams(self._normal)
        self._vocabulary = tokenizer.vocabulary
        self._decoded = _decoded(model, tokenizer)
        self._strip = "^▁+" if model.normalizer_spec.remove_extra_whitespaces else "^▁"

    def split(self, texts):
        codes = tf.fill(tf.shape(texts), "")
        if self._vocabulary is not None:
            pattern = f"(?s)({LANGUAGE_CODE.pattern}).*"
            found = tf.strings.regex_full_match(texts, pattern)
            codes = tf.where(found, tf.strings.regex_replace(texts, pattern, r"\1"), "")
        width = tf.strings.length(codes, unit="UTF8_CHAR")
        rest = tf.strings.substr(texts, tf.strings.length(codes), tf.strings.length(texts))
        source = characters(rest)
        code_points, rows, starts, stops = self._normalize(source)
        begins, ids = self._split(code_points, rows)
        ids = tf.where(ids < 0, self._unknown, ids)
        unknown = (ids == self._unknown) & begins
        # Of unknown pieces side by side the first is all of them.
        at = tf.boolean_mask(tf.range(tf.size(rows)), begins)
        ids, rows, unknown, first = (tf.gather(e, at) for e in (ids, rows, unknown, starts))
        again = unknown & shifted(unknown, -1, False) & (rows == shifted(rows, -1, -1))
        ids, rows, first = (tf.boolean_mask(each, ~again) for each in (ids, rows, first))
        last_of_row = rows != shifted(rows, 1, -1)
        ends = tf.where(last_of_row, tf.gather(stops, rows), shifted(first, 1, 0))
        if self._vocabulary is not None:
            ids = tf.gather(self._of_vocabulary(), ids)
        shift = tf.gather(width, rows)
        tokens = Tokens.of_rows(ids, first + shift, ends + shift, rows, source.batch_size)
        return tokens if self._vocabulary is None else self._behind(codes, width, tokens)

    def decode(self, token_ids, kept):
        pieces = tf.where(kept, tf.gather(tf.constant(self._decoded), token_ids), "")
        joined = tf.strings.reduce_join(pieces, axis=-1)
        joined = tf.strings.regex_replace(joined, self._strip, "")
        return tf.strings.regex_replace(joined, "▁", " ")

    def _of_vocabulary(self):
        """The vocabulary's id of each piece."""
        unknown = self._vocabulary["<unk>"]
        return tf.constant([self._vocabulary.get(each, unknown) for each in self._pieces])

    def _behind(self, codes, width, tokens):
        """The tokens, behind that of a language code where there is one."""
        known = {t: i for t, i in self._vocabulary.items() if LANGUAGE_CODE.fullmatch(t)}
        ids = tf.fill(tf.shape(codes), self._vocabulary["<unk>"])
        for token, place in known.items():
            ids = tf.where(codes == token, place, ids)
        present = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(ids, width > 0), tf.cast(width > 0, tf.int64)
        )
        zeros, ends = present * 0, present.with_values(tf.boolean_mask(width, width > 0))
        return Tokens(
            tf.concat([present, tokens.token_ids], axis=1),
            tf.concat([zeros, tokens.starts], axis=1),
            tf.concat([ends, tokens.ends], axis=1),
        )


class _Merges:
    """Neighbours become one piece, the best piece first."""

    def __init__(self, normal):
        symbols = {}
        for each in normal.values():
            for part in (*each.piece, each.piece):
                symbols.setdefault(part, len(symbols))
        order = sorted(normal.values(), key=lambda each: -each.score)
        ranks = {
            (symbols[each.piece[:cut]], symbols[each.piece[cut:]]): rank
            for rank, each in enumerate(order)
            for cut in range(1, len(each.piece))
            if each.piece[:cut] in symbols and each.piece[cut:] in symbols
        }
        self._ranks = PairTable(ranks or {(0, 0): -1})
        self._results = [symbols[each.piece] for each in order]
        self._ends_at_bars = not any(chr(BAR) in part[1:] for part in symbols)
        of_characters = {(0, ord(part)): place for part, place in symbols.items() if len(part) == 1}
        self._characters = PairTable(of_characters)
        ids = {each.piece: place for place, each in normal.items()}
        self._ids = np.array([ids.get(part, -1) for part in symbols], "int32")

    def __call__(self, code_points, rows):
        """Where pieces begin, and the id of what begins at each code point, or -1."""
        size = tf.size(code_points)
        index = tf.range(size)
        symbols = self._characters(tf.zeros_like(code_points), code_points)
        begins_word = rows != shifted(rows, -1, -1)
        if self._ends_at_bars:
            begins_word |= code_points == BAR
        words = tf.cumsum(tf.cast(begins_word, tf.int32)) - 1
        parts = merged(Parts(symbols, words, index, index), self._ranks, self._results)
        found = tf.where(parts.ids >= 0, tf.gather(self._ids, tf.maximum(parts.ids, 0)), -1)
        at = parts.starts[:, None]
        begins = tf.scatter_nd(at, tf.ones_like(parts.starts), [size]) > 0
        return begins, tf.scatter_nd(at, found, [size])


class _Unigrams:
    """The pieces whose scores have the greatest sum: Viterbi's way through the text."""

    def __init__(self, normal):
        self._trie = Trie({(0, *map(ord, each.piece)): i for i, each in normal.items()})
        self._scores = np.zeros(max(normal) + 2, "float32")
        for place, each in normal.items():
            self._scores[place] = each.score
        lowest = min(each.score for each in normal.values())
        self._unknown = np.float32(lowest) - np.float32(PENALTY)

    def __call__(self, code_points, rows):
        """Where pieces begin, and the id of what begins at each code point, or -1."""
        size, longest = tf.size(code_points), self._trie.longest
        state, found, trie = tf.zeros_like(code_points), [], self._trie.held()
        for step in range(longest):
            same = rows == shifted(rows, step, -1) if step else rows >= 0
            following = shifted(code_points, step, 0) if step else code_points
            state = tf.where(same, trie.step(state, following), -1)
            found.append(trie.value(state))
        ids = tf.stack(found, axis=1)  # (N, M) of the piece of m + 1 characters that begins here
        scores = tf.where(ids >= 0, tf.gather(self._scores, tf.maximum(ids, 0)), -float("inf"))
        alone = tf.one_hot(0, longest, on_value=True, off_value=False)
        scores = tf.where(alone & (ids < 0), self._unknown, scores)
        last = tf.reduce_max(tf.concat([[-1], tf.cast(rows, tf.int32)], axis=0))
        counts = tf.math.unsorted_segment_sum(tf.ones_like(code_points), rows, last + 1)
        before = tf.cumsum(counts, exclusive=True)
        place = tf.range(size) - tf.gather(before, rows)
        length = tf.reduce_max(tf.concat([[1], counts], axis=0))  # no loop stacks no steps
        at = tf.stack([tf.cast(rows, tf.int32), place], axis=1)
        dense = tf.fill([tf.size(counts), length, longest], -float("inf"))
        taken = self._best(tf.tensor_scatter_nd_update(dense, at, scores), counts)  # (B, T)
        taken = tf.gather_nd(taken, at)
        begins = taken > 0
        ids = tf.gather(ids, tf.maximum(taken, 1) - 1, batch_dims=1)
        return begins, tf.where(begins, ids, -1)

    def _best(self, scores, counts):
        """(B, T, M) scores to (B, T) the length of the piece that begins at each place, or 0."""
        batch, length, longest = tf.unstack(tf.shape(scores))
        back = longest - 1 - tf.range(longest)
        # By where they end, the longest first: of equals the one that began first stays.
        padded = tf.pad(scores, [(0, 0), (longest, 0), (0, 0)], constant_values=-np.inf)

        def forward(t, best, chosen):
            own = tf.stack(
                [padded[:, t + 1 + m, longest - 1 - m] for m in range(self._trie.longest)], axis=1
            )
            totals = best + own  # (B, M)
            place = tf.argmax(totals, axis=1, output_type=tf.int32)
            best = tf.concat([best[:, 1:], tf.reduce_max(totals, axis=1)[:, None]], axis=1)
            return t + 1, best, chosen.write(t, longest - place)

        before = tf.where(back == 0, 0.0, -np.inf)
        chosen = tf.TensorArray(tf.int32, length, element_shape=[None])
        _, _, chosen = tf.while_loop(
            lambda t, *_: t < length,
            forward,
            (0, tf.tile(before[None], [batch, 1]), chosen),
            shape_invariants=(
                tf.TensorShape([]),
                tf.TensorShape([None, self._trie.longest]),
                tf.TensorShape(None),
            ),
        )
        chosen = tf.transpose(chosen.stack())  # (B, T) by where they end
        row = tf.range(batch)

        def backward(end, taken):
            inside = end > 0
            size = tf.where(inside, tf.gather(chosen, tf.maximum(end - 1, 0), batch_dims=1), 0)
            begin = end - size
            marks = tf.where(inside, size, 0)
            at = tf.stack([row, begin], axis=1)
            return begin, tf.tensor_scatter_nd_add(taken, at, marks)

        taken = tf.zeros([batch, length + 1], tf.int32)
        _, taken = tf.while_loop(lambda end, _: tf.reduce_any(end > 0), backward, (counts, taken))
        return taken[:, :-1]


def _decoded(model, tokenizer):
    """What each id is written as, as `SentencePieces.decode` has it."""
    if tokenizer.vocabulary is None:
        unknown = model.trainer_spec.unk_surface
        return [
            unknown if each.type == UNKNOWN else "" if each.type == CONTROL else each.piece
            for each in model.pieces
        ]
    pieces = [""] * len(tokenizer)
    for token, place in tokenizer.vocabulary.items():
        pieces[place] = "" if token in SPECIAL_TOKENS else token
    return pieces


def _require(model):
    trainer = model.trainer_spec
    types = {each.type for each in model.pieces}
    problems = [
        (trainer.model_type not in (UNIGRAM, BPE), "must be one of unigrams or byte pairs"),
        (trainer.treat_whitespace_as_suffix, "must set the space before a word"),
        (trainer.byte_fallback or BYTE in types, "must have no pieces for bytes"),
        (USER_DEFINED in types, "must have no pieces of the user's own"),
    ]
    for wrong, message in problems:
        if wrong:
            raise ValueError(f"text graph: a SentencePiece model {message}.")

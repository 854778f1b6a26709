"""Pipelines: text in, answers out.

A pipeline keeps nothing between calls, so several threads may share one.
"""

import functools
import numbers
import operator
from pathlib import Path

from .decoding import search
from .manifest import BundleError, read_bundle, verify_files
from .results import Translation
from .session import EncoderDecoder
from .text import CharacterTable, pad


class Translate:
    """One text into another.

        text -> characters -> encoder -> beam search over decoder steps -> characters -> text

    Texts of a list are sorted by length and answered in batches of `batch_size`, so that little is
    padded.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        threads: as in `serving.load`.

    Raises:
        BundleError: if the graphs or character tables are not what the pipeline needs.
    """

    batch_size = 64

    def __init__(self, folder, manifest, threads=None):
        self.manifest = manifest
        self._graphs = EncoderDecoder(folder, manifest, threads)
        self._source, self._target = (
            _open_table(folder, manifest, role) for role in ("source", "target")
        )
        if len(self._target) != self._graphs.vocab_size:
            raise BundleError(
                f"{folder}: the target table has {len(self._target)} characters, the decoder "
                f"{self._graphs.vocab_size}. Export the bundle again."
            )

    def __call__(
        self, texts, beam_size=None, n_best=1, length_penalty=None, attention=False
    ) -> Translation | list[Translation]:
        """Answer a text, or each text of a list.

        Args:
            texts: a string, or a list or tuple of strings.
            beam_size: how many hypotheses to follow; 1: greedy; None: the manifest's default.
            n_best: how many answers to give to each text, at most `beam_size`.
            length_penalty: alpha of GNMT's length penalty; None: the manifest's default.
            attention: whether to return attention weights too.

        Returns:
            A `Translation` for a string; for a list, the list of theirs, in its order.

        Raises:
            ValueError: if a text or an option is refused; nothing is answered then.
        """
        decode = self._search(beam_size, n_best, length_penalty, attention)
        if not isinstance(texts, (list, tuple)):
            return self._translate([self.encode(texts)], decode)[0]
        rows = [self.encode(text, f"Translate: texts[{i}]") for i, text in enumerate(texts)]
        return self._translate(rows, decode)

    def encode(self, text, name="Translate: text"):
        """Return the token ids of a text.

        Raises:
            ValueError: beginning with `name`, if the text can not be answered.
        """
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a string; received {_shown(text)}.")
        if not text.strip():
            raise ValueError(
                f"{name} is {'blank' if text else 'empty'}; write something to answer."
            )
        if self.manifest.text_prefix:
            self._check_prefix(text, name)
        token_ids, limit = self._source.encode(text), self.manifest.limits.source_length
        if len(token_ids) > limit:
            raise ValueError(
                f"{name} has {len(token_ids)} characters; the limit is {limit}. "
                "Nothing was truncated: shorten it."
            )
        return token_ids

    def _check_prefix(self, text, name):
        prefix = self.manifest.text_prefix
        value, separator, rest = text.partition(prefix.separator)
        if not separator:
            raise ValueError(
                f"{name} must begin with a {prefix.name} and {prefix.separator!r}"
                f"{self._example()}; received {_shown(text)}."
            )
        if value not in prefix.values:
            raise ValueError(
                f"{name} has an unknown {prefix.name} {_shown(value)}; "
                f"known: {', '.join(prefix.values)}{self._example()}."
            )
        if not rest.strip():
            raise ValueError(f"{name} has nothing after {value + separator!r}{self._example()}.")

    def _example(self):
        return f"; write e.g. {self.manifest.examples[0]!r}" if self.manifest.examples else ""

    def _search(self, beam_size, n_best, length_penalty, attention):
        """Return `search` with all its options, checked."""
        defaults = self.manifest.decoding
        beam_size = defaults.beam_size if beam_size is None else beam_size
        alpha = defaults.length_penalty if length_penalty is None else length_penalty
        beam_size = require_count("Translate: beam_size", beam_size, most=self._graphs.vocab_size)
        n_best = require_count("Translate: n_best", n_best)
        if n_best > beam_size:
            raise ValueError(
                f"Translate: n_best must be at most beam_size; received {n_best} and {beam_size}."
            )
        if not isinstance(alpha, numbers.Real) or not -10 <= alpha <= 10:
            raise ValueError(
                "Translate: length_penalty must be a number from -10 to 10; "
                f"received {_shown(alpha)}."
            )
        return functools.partial(
            search,
            functools.partial(self._graphs.step, attention=bool(attention)),
            target_length=self.manifest.limits.target_length,
            beam_size=beam_size,
            n_best=n_best,
            alpha=float(alpha),
        )

    def _translate(self, rows, decode):
        order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
        answers = [None] * len(rows)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            token_ids, lengths = pad([rows[index] for index in batch])
            state = self._graphs.encode(token_ids, lengths)
            for index, hypotheses in zip(batch, decode(state, batch_size=len(batch))):
                answers[index] = self._answer(hypotheses, len(rows[index]))
        return answers

    def _answer(self, hypotheses, source_length):
        if not hypotheses:
            raise BundleError("Translate: the graphs gave no finite log-probability.")
        best, *others = (
            Translation(
                text=self._target.decode(hypothesis.token_ids),
                score=hypothesis.score,
                attention=_own_columns(hypothesis.attention_weights, source_length),
            )
            for hypothesis in hypotheses
        )
        return Translation(best.text, best.score, best.attention, tuple(others))


MOST_THREADS = 1024  # onnxruntime starts them all, whether they help or not
PIPELINES = {"Translate": Translate}


def open_bundle(path, threads=None):
    """Open a bundle and return its pipeline: what `serving.load` does."""
    folder = Path(path)
    if threads is not None:
        threads = require_count("load: threads", threads, most=MOST_THREADS)

    def open_pipeline(manifest):
        if manifest.pipeline not in PIPELINES:
            raise BundleError(
                f"{folder}: manifest.json asks for the pipeline {manifest.pipeline!r}; this "
                f"seqkeras-serving has {', '.join(PIPELINES)}: "
                "upgrade seqkeras-serving."
            )
        verify_files(folder, manifest, [*manifest.graph_files, *manifest.tokenizers.values()])
        return PIPELINES[manifest.pipeline](folder, manifest, threads)

    return read_bundle(folder, open_pipeline)


def require_count(name, value, most=None):
    """Return `value` as an int of at least 1 and at most `most`.

    Raises:
        ValueError: if it is none.
    """
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count < 1 or (most is not None and count > most):
        bounds = "of at least 1" if most is None else f"from 1 to {most}"
        raise ValueError(f"{name} must be a whole number {bounds}; received {_shown(value)}.")
    return count


def _open_table(folder, manifest, role):
    if role not in manifest.tokenizers:
        raise BundleError(f"{folder}: manifest.json names no {role} tokenizer. Export it again.")
    return CharacterTable.from_file(folder / manifest.tokenizers[role])


def _own_columns(attention_weights, source_length):
    """Return None or the (T, S) weights without the padding of their batch."""
    return None if attention_weights is None else attention_weights[:, :source_length].copy()


def _shown(value):
    """Return a value for an error: a short text as it is written, else its type with it."""
    text = " ".join(repr(value).split())
    text = text if len(text) <= 50 else f"{text[:49]}…"
    return text if isinstance(value, str) or value is None else f"{type(value).__name__} {text}"

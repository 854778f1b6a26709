"""The token ids of texts, or pairs of texts, as a model of labelled texts reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.data.batches import Sequences
from seqkeras.serving.text import Subwords
from seqkeras.tokenizers.encode_all import Encoder, special_ids_around
from seqkeras.training.parts.encoded_texts import in_parts

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Encoding


class TextRows:
    """Rows of token ids: one for each text, cut off at the run's limit, or with a stride one for
    each window of it.

    Args:
        run: has the tokenizer "text", the limit of tokens, and the settings "pairs" and "stride".

    Call arguments:
        texts: an iterable of texts, or of tuples of two.

    Returns:
        `Sequences` of the token ids; `Sequences` of the segment ids, or None for single texts; and
        the number of rows of each text.

    Attributes:
        cut: how many texts lost tokens, since they have too many.
    """

    def __init__(self, run: RunFiles):
        self.cut = 0
        self._run, self._limit = run, run.record.limits["source_length"]
        self._are_pairs = run.record.settings.get("pairs", False)
        tokenizer = run.tokenizers["text"]
        if run.record.settings.get("stride") is not None:
            self._rows = self._windows
        elif not self._are_pairs:
            self._encode = Encoder(tokenizer, special_tokens=True)
            _, self._after = special_ids_around(tokenizer)
            self._rows = self._singles
        elif isinstance(tokenizer, Subwords):
            self._encode, self._around = Encoder(tokenizer), _around_pairs(tokenizer)
            self._rows = self._pairs
        else:
            self._rows = self._analyzed

    def __call__(self, texts: Iterable[Any]) -> tuple[Sequences, Sequences | None, list[int]]:
        ids, segments, counts = [], [], []
        for some in in_parts(texts):
            of_texts = self._rows(some)
            counts += map(len, of_texts)
            rows = [row for of_text in of_texts for row in of_text]
            ids.append(Sequences([row[0] for row in rows]))
            if self._are_pairs:
                segments.append(Sequences([row[1] for row in rows]))
        return Sequences.joined(ids), Sequences.joined(segments) if segments else None, counts

    def _singles(self, texts):
        """Return for each text a list of one pair: token ids and no segment ids."""
        end = self._limit - len(self._after)
        rows = self._encode(texts)
        self.cut += sum(len(row) > self._limit for row in rows)
        return [
            [(row if len(row) <= self._limit else [*row[:end], *self._after], ())] for row in rows
        ]

    def _pairs(self, texts):
        """Return for each pair a list of one pair: token ids and segment ids."""
        sides = zip(*(self._encode([text[side] for text in texts]) for side in (0, 1)), strict=True)
        rows = []
        for text, (first, second) in zip(texts, sides, strict=True):
            (before, between, after), (one, two, three, four, five) = self._around
            ids = [*before, *first, *between, *second, *after]
            if len(ids) > self._limit:
                rows += self._analyzed([text])
                continue
            segments = [*one, *[two] * len(first), *three, *[four] * len(second), *five]
            rows.append([(ids, segments)])
        return rows

    def _analyzed(self, texts):
        """Return for each text a list of one pair, token ids and segment ids, by any tokenizer."""
        encodings = [text_encoding(self._run, text) for text in texts]
        tokenizer: Any = self._run.tokenizers["text"]
        self.cut += sum(
            len(encoding) == self._limit < len(tokenizer.analyze(*text))
            for encoding, text in zip(encodings, texts, strict=True)
        )
        return [[(encoding.token_ids, encoding.segment_ids)] for encoding in encodings]

    def _windows(self, texts):
        """Return for each text a list of pairs, of its windows."""
        stride, tokenizer = self._run.record.settings["stride"], self._run.tokenizers["text"]
        windows = (tokenizer.windows(None, text, self._limit, stride) for text in texts)
        return [[(window.token_ids, window.segment_ids) for window in row] for row in windows]


def parts(text: Any) -> tuple[str, ...]:
    """Return a text, or two, as a tuple."""
    return text if isinstance(text, tuple) else (text,)


def text_encoding(run: RunFiles, text: Any) -> Encoding:
    """Return the `Encoding` of a text, or of a tuple of two; what is over the run's limit is cut
    off."""
    limit = run.record.limits["source_length"]
    return run.tokenizers["text"].analyze(*parts(text), max_length=limit, truncate=True)


def _around_pairs(tokenizer: Subwords) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the ids of special tokens before, between and behind two texts; and the segment ids of
    these three, with that of each text between them."""
    encoding, count = tokenizer.analyze("a", "a"), len(tokenizer.encode("a"))
    real = [index for index, offset in enumerate(encoding.offsets) if offset is not None]
    first, second = real[:count], real[count:]
    special = slice(first[0]), slice(first[-1] + 1, second[0]), slice(second[-1] + 1, None)
    before, between, after = (encoding.segment_ids[part] for part in special)
    of_texts = encoding.segment_ids[first[0]], encoding.segment_ids[second[0]]
    segments = before, of_texts[0], between, of_texts[1], after
    return [encoding.token_ids[part] for part in special], segments

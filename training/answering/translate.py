"""`Translate` while it trains: texts to texts, by the search that the run asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.decoding import Constraint, beam, greedy, in_batches
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.arrays import FRAMES, frame_arrays
from seqkeras.serving.results import Translation
from seqkeras.serving.rows import Rows
from seqkeras.tokenizers import CharacterTable, encode_all, pad
from seqkeras.training.compiling import OncePerModel

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer


class Translate:
    """Texts to `Translation`s, by the search of the run's record; what is over the limit is cut
    off. Compiled once for a model.

    Args:
        run: a `seqkeras.runs.RunFiles`.
    """

    def __init__(self, run: RunFiles):
        parsed = run.record.parse("run.json")
        self.source, self.target = run.tokenizers.get("source"), run.tokenizers["target"]
        self.rows = rows_of(run.record.settings)
        self.decoding, self.limit = parsed.decoding, parsed.limits.source_length
        self.search = {
            "start_id": self.decoding.start_id,
            "end_id": self.decoding.end_id,
            "max_length": parsed.limits.target_length,
        }
        if self.decoding.regex is not None:
            self.search["constraint"] = Constraint.of_regex(
                self.decoding.regex, self.target, self.decoding.end_id
            )
        self.decode = OncePerModel(self._decoder)

    def __call__(
        self,
        model: keras.Model,
        texts: Sequence[Any],
        advance: Callable[[int], object] | None = None,
    ) -> Any:
        """Return the answers of a model to texts, to arrays (frames, numbers), or to rows.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        if self.source is None:
            rows, pad_rows = (
                [frames[: self.limit] for frames in frames_of(self.rows, texts)],
                _padded,
            )
        else:
            pad_rows, read = pad, source_ids(self.source, texts)
            rows = [self._cut(text, ids) for text, ids in zip(texts, read, strict=True)]
        token_ids, scores = in_batches(self.decode(model), rows, pad_rows, advance=advance)
        return [
            Translation(self.target.decode(self._before_end(row)), float(score))
            for row, score in zip(token_ids.tolist(), scores, strict=True)
        ]

    def fits(self, model: keras.Model, text: Any) -> bool:
        """Return whether a text has tokens, and nothing is cut off."""
        if self.rows is not None:
            return True
        if self.source is None:
            return len(text) <= self.limit
        [token_ids] = source_ids(self.source, [text])
        return bool(self.source.encode(text)) and len(token_ids) <= self.limit

    def _cut(self, text, token_ids):
        if len(token_ids) <= self.limit:
            return token_ids
        if isinstance(self.source, CharacterTable):
            return token_ids[: self.limit]
        return self.source.analyze(text, max_length=self.limit, truncate=True).token_ids

    def _before_end(self, token_ids):
        end_id = self.decoding.end_id
        return token_ids[: token_ids.index(end_id)] if end_id in token_ids else token_ids

    def _decoder(self, model):
        num_beams = self.decoding.num_beams

        def best_of_beams(token_ids, lengths):
            state = model.encode(token_ids, lengths)
            options = {"num_beams": num_beams, "length_penalty": self.decoding.length_penalty}
            token_ids, _, scores = beam(model.step, state, **self.search, **options)
            return token_ids[:, 0], scores[:, 0]

        def most_probable(token_ids, lengths):
            state = model.encode(token_ids, lengths)
            token_ids, _, scores = greedy(model.step, state, **self.search)
            return token_ids, scores

        return most_probable if num_beams == 1 else best_of_beams


def _padded(rows):
    arrays = frame_arrays(rows)
    return arrays[FRAMES], arrays["lengths"]


def rows_of(settings: Mapping[str, Any]) -> Rows | None:
    """Return the `Rows` of settings; None where sources are no rows."""
    rows = settings.get("rows")
    return rows and Rows(**parse_fields(Rows, rows, "rows", []))


def frames_of(rows: Rows | None, sources: Sequence[Any]) -> list[Any]:
    """Return the (frames, numbers) that an encoder reads: the sources themselves, or of `Rows` a
    frame for each."""
    if rows is None:
        return [*sources]
    return [rows.window((source,), "row")[0] for source in sources]


def source_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return for each text the ids that an encoder reads, with the special tokens around them."""
    return encode_all(tokenizer, [*texts], special_tokens=marks_sources(tokenizer))


def marks_sources(tokenizer: Tokenizer) -> bool:
    """Return whether special tokens stand around what an encoder reads."""
    return not isinstance(tokenizer, CharacterTable)

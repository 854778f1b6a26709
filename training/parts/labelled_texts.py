"""Texts, or pairs of texts, with a label or a number each, from a user's file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from seqkeras.attention import StructuredSelfAttention
from seqkeras.data.columns import each_row
from seqkeras.data.stored import Stored
from seqkeras.runs import RunError, RunFiles
from seqkeras.serving.categories import category_text
from seqkeras.serving.text import Tokenizer
from seqkeras.tensors import Tensor
from seqkeras.terminal import one_line
from seqkeras.training.console import console, say_merged
from seqkeras.training.options.labelled_texts import WAYS_OUT
from seqkeras.training.parts.encoded_texts import EncodedTexts
from seqkeras.training.parts.encoders import encoded
from seqkeras.training.parts.pretrained import inputs_of_ids
from seqkeras.training.parts.text_rows import TextRows, parts
from seqkeras.training.parts.varied_subwords import varied_inputs
from seqkeras.training.parts.vocabularies import Texts
from seqkeras.training.task import Modelling
from seqkeras.training.wording import counted

MOST_TOKENS = 128  # of a text or a pair, by default
NOT_FILLED = "an empty column or a text without a token"


class LabelledTexts(EncodedTexts):
    """Base of what reads rows of a text, or a pair, and a target."""

    target_option: str  # the option that names the column of targets

    def rows(self, path: Path | str) -> Stored:
        """Return (line, text or tuple of two, target as it is written, group) of a file's rows.

        The target is without the white space around it.
        """
        options = self.options
        names, distinct = options.texts.columns(options, self.target_option)
        rows = self.filled_rows(path, distinct, names)
        first = distinct.index(options.text_column)
        second = None if options.pair_column is None else distinct.index(options.pair_column)
        target = distinct.index(getattr(options, self.target_option))
        grouped = None
        if options.group_column is not None:
            grouped = distinct.index(options.group_column)
            say_merged(path, options.group_column, (values[grouped] for _, values in rows))

        def row(filled):
            line, values = filled
            return (
                line,
                values[first] if second is None else (values[first], values[second]),
                values[target].strip(),
                line if grouped is None else category_text(values[grouped]),
            )

        return rows.mapped(row)

    def filled_rows(self, path: Path | str, columns: Sequence[str], names: Sequence[str]) -> Stored:
        """Return (line, texts of the columns) of a file's rows whose columns are not empty, and
        whose texts have a token; others are left out with --skip-empty, and a line says how many.

        Args:
            path: path of the file.
            columns: to read.
            names: names of the options that name columns.

        Raises:
            RunError: if none is left, or, without --skip-empty, a row is not filled.
        """
        left_out = Counter()
        filled = Stored(self._each_filled_row(path, columns, names, left_out))
        if skipped := left_out.total():
            rows = counted(skipped, f"rows with {NOT_FILLED} are", f"row with {NOT_FILLED} is")
            console.print(f"  {one_line(path)}: {rows} left out")
        if not filled:
            raise RunError(f"{path}: each row has {NOT_FILLED}.")
        return filled

    def _each_filled_row(self, path, columns, names, left_out):
        """Yield the rows of `filled_rows`.

        Args:
            left_out: a `Counter`, whose sum will be how many others there are.
        """
        options = self.options
        may_be_empty = columns if options.skip_empty else ()
        reading = options.texts.reading(names)
        of_texts = (options.text_column, options.pair_column)
        texts = [index for index, column in enumerate(columns) if column in of_texts]
        for row in each_row(path, columns, may_be_empty, **reading, ways_out=WAYS_OUT):
            line, values = row
            without = [index for index in texts if not self.has_token(values[index])]
            if without and not options.skip_empty:
                raise RunError(
                    f"{path}, line {line}: {columns[without[0]]!r} has no token, "
                    f"{values[without[0]]!r:.40}; remove the line, or leave it out by "
                    f"{WAYS_OUT.empty}."
                )
            if not without and all(map(str.strip, values)):
                yield row
            else:
                left_out[NOT_FILLED] += 1

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return self.tokenizer_of(examples, _texts_of)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        if tokenizers:
            yield "inputs", "text", Texts(examples, _texts_of)

    def limits(self) -> dict[str, int]:
        """Return the run's limits."""
        max_length = self.options.max_length
        if self.pretrained:
            return {"source_length": self.pretrained.limit(max_length, MOST_TOKENS)}
        return {"source_length": max_length or MOST_TOKENS}

    def settings(self) -> dict[str, Any]:
        """Return the run's settings that any target has."""
        stride = {} if self.options.stride is None else {"stride": self.options.stride}
        return {"pairs": self.options.pair_column is not None} | stride


class LabelledTextModelling(Modelling):
    """Base of the models of a text, or a pair."""

    validation_loss = True

    def text_inputs(
        self, examples: Sequence[Any], targets: np.ndarray, run: RunFiles
    ) -> tuple[Any, Any, np.ndarray]:
        """Return the inputs, targets and lengths of examples, from `arrays`: a row for
        each, or for each window of its text.

        Args:
            targets: an array of each example's.
        """
        options, pretrained = self.options, self.reading.pretrained
        rows = TextRows(run)
        token_ids, segment_ids, counts = rows(example.text for example in examples)
        inputs = inputs_of_ids(token_ids, pretrained)
        if options.pair_column is not None and (pretrained is None or pretrained.has_segments):
            inputs["segment_ids"] = segment_ids
        if rows.cut:
            more = f"of more than --max-length {run.record.limits['source_length']} tokens"
            cut = counted(rows.cut, f"texts {more} are", f"text {more} is")
            console.print(f"  {cut} cut")
        return inputs, np.repeat(targets, counts, axis=0), token_ids.lengths

    def varied(self, inputs: Any, targets: Any, run: RunFiles) -> Any:
        return varied_inputs(self.options, inputs, targets, run)

    def summarized(self, inputs: Tensor, hidden: Tensor, real: Tensor) -> Tensor:
        """Return the vector of a text, by attention over its tokens (B, T, D); (B, hops D)."""
        options = self.options
        summary, _ = StructuredSelfAttention(options.units, options.hops)(hidden, mask=real)
        return keras.layers.Dropout(options.dropout)(summary)

    def encoded(self, run: RunFiles) -> tuple[Any, Any]:
        """Return the symbolic inputs of a model that --encoder makes, and the vector of a text."""
        takes_pairs = self.options.pair_column is not None
        tokenizer, limit = run.tokenizers["text"], run.record.limits["source_length"]
        inputs, hidden, real = encoded(self.options, tokenizer, limit, takes_pairs)
        return inputs, self.summarized(inputs, hidden, real)


def _texts_of(example):
    return parts(example.text)

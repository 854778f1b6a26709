"""Texts, or pairs of texts, with a label or a number each, from a user's file."""

import keras
import numpy as np

from seqkeras.attention import StructuredSelfAttention
from seqkeras.data.columns import read_columns
from seqkeras.runs import RunError
from seqkeras.terminal import one_line
from seqkeras.tokenizers import learn_word_piece
from training.answering.classify import text_encodings
from training.console import console
from training.task import Task
from training.tasks.encoders import encoded
from training.tasks.pretrained import Pretrained, inputs_of

MOST_TOKENS = 128  # of a text or a pair, by default


class LabelledTexts(Task):
    """Base of the tasks whose rows have a text, or a pair, and a target.

    Attributes:
        pretrained: a `Pretrained`, where an encoder is fine-tuned; else None.
    """

    validation_loss = True
    target_option: str  # the option that names the column of targets

    def __init__(self, options):
        super().__init__(options)
        self.pretrained = None

    def read_pretrained(self):
        """Read the encoder of --pretrained, if it is given."""
        if self.options.pretrained is not None:
            self.pretrained = Pretrained.read(self.options.pretrained)

    def rows(self, path):
        """A list of (where, text or tuple of two, target as it is written, group) of a file."""
        options = self.options
        names = ["text_column", "pair_column", self.target_option, "group_column"]
        names = [name for name in names if getattr(options, name) is not None]
        columns = [getattr(options, name) for name in names]
        distinct = [*dict.fromkeys(columns)] if options.group_column is not None else columns
        may_be_empty = distinct if options.skip_empty else ()
        read, found = read_columns(path, distinct, may_be_empty, **options.reading(names)), []
        for line, values in read:
            if not all(map(str.strip, values)):
                continue
            value = dict(zip(distinct, values, strict=True))
            texts = [value[own] for own in (options.text_column, options.pair_column) if own]
            target = value[getattr(options, self.target_option)]
            text = texts[0] if options.pair_column is None else tuple(texts)
            group = line if options.group_column is None else value[options.group_column]
            found.append((f"{path}, line {line}", text, target, group))
        if skipped := len(read) - len(found):
            console.print(f"  {one_line(path)}: {skipped:,} rows with an empty column are left out")
        if not found:
            raise RunError(f"{path}: there is no row without an empty column.")
        return found

    def tokenizers(self, examples):
        if self.pretrained:
            return {"text": self.pretrained.tokenizer}
        texts = [text for example in examples for text in parts(example.text)]
        try:
            tokenizer = learn_word_piece(texts, self.options.vocab_size, self.options.lowercase)
        except ValueError as error:
            raise RunError(f"{self.options.file}: {error} Choose a larger --vocab-size.") from error
        return {"text": tokenizer}

    def limits(self):
        """The run's limits."""
        asked = self.options.max_length
        if self.pretrained:
            return {"source_length": self.pretrained.limit(asked, MOST_TOKENS)}
        return {"source_length": asked or MOST_TOKENS}

    def settings(self):
        """The run's settings that any target has."""
        stride = {} if self.options.stride is None else {"stride": self.options.stride}
        return {"pairs": self.options.pair_column is not None} | stride

    def text_inputs(self, examples, targets, run):
        """The inputs, targets and lengths of examples, as `arrays` returns them: a row for each, or
        for each window of its text.

        Args:
            targets: an array of each example's.
        """
        rows = [text_encodings(run, example.text) for example in examples]
        encodings = [window for row in rows for window in row]
        inputs = inputs_of(encodings, self.options.pair_column is not None, self.pretrained)
        lengths = inputs["token_ids"].lengths
        if self.options.stride is None:
            self._say_what_is_cut(examples, lengths, run)
        return inputs, np.repeat(targets, [len(row) for row in rows], axis=0), lengths

    def _say_what_is_cut(self, examples, lengths, run):
        tokenizer, limit = run.tokenizers["text"], run.record.limits["source_length"]
        full = [example for example, length in zip(examples, lengths) if length == limit]
        cut = sum(len(tokenizer.analyze(*parts(example.text))) > limit for example in full)
        if cut:
            console.print(f"  {cut:,} texts of more than --max-length {limit} tokens are cut")

    def summarized(self, inputs, hidden, real):
        """The vector of a text, by attention over its tokens (B, T, D); (B, hops D)."""
        options = self.options
        summary, _ = StructuredSelfAttention(options.units, options.hops)(hidden, mask=real)
        return keras.layers.Dropout(options.dropout)(summary)

    def encoded(self, run):
        """The symbolic inputs of a model that --encoder makes, and the vector of a text."""
        takes_pairs = self.options.pair_column is not None
        inputs, hidden, real = encoded(self.options, run.tokenizers["text"], takes_pairs)
        return inputs, self.summarized(inputs, hidden, real)


def parts(text):
    """A text, or two, as a tuple."""
    return text if isinstance(text, tuple) else (text,)

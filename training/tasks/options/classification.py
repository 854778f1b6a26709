"""Options of `python -m training classification`."""

import dataclasses

from training.options import FRACTION, DataFile, Number, argument, at_least, option
from training.tasks.options.encoders import EncoderOptions


@dataclasses.dataclass(frozen=True)
class ClassificationOptions(EncoderOptions):
    """Sentences, or pairs of sentences, and their labels, from a file.

    Your file looks like this (.csv; .tsv with tabs, and quotes as characters; .jsonl with an object
    a line):

    \b
        text,label
        a fine film,good
        "dull, from end to end",bad

    Pairs have their second text in a third column: --pair-column question. The model
    reads WordPieces that are learned from the file; attention sums up what --encoder makes of them.
    """

    file: str = argument(DataFile(), "Of training: .csv, .tsv or .jsonl.")
    validation: str | None = option(
        None, DataFile(), "File of validation; without it, some rows of FILE are held out."
    )
    held_out: float = option(0.1, FRACTION, "Share of FILE's rows that are held out.")
    text_column: str = option("text", str, "Name of the column of texts.")
    pair_column: str | None = option(None, str, "Name of that of second texts, of pairs.")
    label_column: str = option("label", str, "Name of that of labels.")
    batch_size: int = option(32, at_least(1), "Examples in each step.")
    passes: int = option(5, at_least(1), "How often the model sees each training example.")
    vocab_size: int = option(8000, at_least(1), "WordPieces to learn, at most.")
    lowercase: bool = option(True, bool, "Read capitals as small letters, without accents.")
    max_length: int = option(128, at_least(4), "Tokens of a text, or a pair; more are cut off.")
    hops: int = option(4, at_least(1), "Queries of the attention that sums up the text.")
    label_smoothing: float = option(
        0.0, Number(0, 1, max_open=True), "Share of probability that all labels get."
    )

"""Options of `seqkeras train classification`."""

import dataclasses

import click

from seqkeras.training.options import DataFile, Number, argument, at_least, option
from seqkeras.training.tasks.options.frames import FrameOptions
from seqkeras.training.tasks.options.labelled_texts import LabelledTextOptions


@dataclasses.dataclass(frozen=True)
class ClassificationOptions(LabelledTextOptions, FrameOptions):
    """Sentences, pairs, or sequences of numbers, and their labels, from a file.

    Your file looks like this (.csv; .tsv with tabs, and quotes as characters; .jsonl with an object
    a line):

    \b
        text,label
        a fine film,good
        "dull, from end to end",bad

    Pairs have their second text in a third column: --pair-column question. The model
    reads WordPieces that are learned from the file; attention sums up what --encoder makes of them.
    With --pretrained FOLDER it is a BERT that is fine-tuned, which reads its own tokens.

    Frames of sound, video or sensors: a row for each frame, with --numbers x,y,z --series-column
    series; or a row for each recording, with --frames-column file that names .npy files of (frames,
    numbers); or a .npz file of the arrays "frames", "labels" and "lengths".

    \b
        series,x,y,z,label
        a,0.1,9.7,0.4,walk
        a,0.2,9.9,,walk
        b,0.0,9.8,0.0,sit
    """

    file: str = argument(DataFile(), "Training file: .csv, .tsv, .jsonl or .npz.")
    label_column: str = option("label", str, "Column of labels.")
    max_length: int | None = option(
        None,
        at_least(4),
        "Tokens of a text or pair (default: 128), or frames of a recording (default: the longest "
        "recording's); the rest is cut off.",
    )
    positive_label: str | None = option(
        None,
        str,
        "Label whose F1 is reported when there are two. Default: the last in alphabetical order.",
    )
    label_smoothing: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Share of the target probability that is spread evenly over all labels.",
    )

    USUAL = ("validation", "text_column", "label_column")

    def check(self):
        super().check()
        frames = self.reads_frames(self.file)
        if self.pretrained is not None and frames:
            raise click.UsageError("--pretrained: reads texts; sequences of numbers have none.")
        if self.teacher is not None and frames:
            raise click.UsageError("--teacher: reads texts; sequences of numbers have none.")
        if self.stride is not None and frames:
            raise click.UsageError(
                "--stride: reads texts in windows; sequences of numbers have none."
            )
        if self.numbers and self.series_column is None:
            raise click.UsageError("--numbers needs --series-column, which tells recordings apart.")
        if self.pair_column is not None and frames:
            raise click.UsageError("--pair-column is of texts; frames have no pairs.")

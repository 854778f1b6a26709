"""`seqkeras train classification`: its options, and what it is made of."""

from collections.abc import Iterable
from pathlib import Path

from seqkeras.training.options import (
    DataFile,
    FitOptions,
    Number,
    Options,
    argument,
    at_least,
    option,
    part,
)
from seqkeras.training.options.distillation import DistillationOptions
from seqkeras.training.options.frames import FrameOptions
from seqkeras.training.options.labelled_texts import OF_SCRATCH, LabelledTextOptions
from seqkeras.training.options.pretrained import PooledOptions
from seqkeras.training.task import Task


class ClassificationOptions(FitOptions, task="classification"):
    """Classify sentences, pairs of sentences, or sequences of numbers.

    Your file looks like this (.csv; .tsv with tabs, and quotes as characters; .jsonl with an object
    a line):

    \b
        text,label
        a fine film,good
        "dull, from end to end",bad

    Pairs have their second text in a third column: --pair-column question. The model reads
    WordPieces that are learned from the file; attention sums up the vectors of --encoder. With
    --pretrained FOLDER the model is a fine-tuned BERT with the tokens of that folder.

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
    batch_size: int = option(32, at_least(1), "Examples in a batch.")
    passes: int = option(5, at_least(1), "Passes over the training examples (epochs).")
    recordings: FrameOptions = part(FrameOptions)
    tuning: PooledOptions = part(PooledOptions)
    teaching: DistillationOptions = part(DistillationOptions)
    texts: LabelledTextOptions = part(LabelledTextOptions)
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
    answer_every: int | None = option(
        None,
        at_least(1),
        "Frames between answers that a --causal model learns: the label is right after every N-th "
        "frame, too. Default: at the end of a recording alone.",
    )
    label_smoothing: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Share of the target probability that is spread evenly over all labels.",
    )

    USUAL = ("validation", "text_column", "label_column")

    def make(self) -> Task:
        from seqkeras.training.parts import classification as parts
        from seqkeras.training.parts.distilling import distilled

        task = Task.of(
            self,
            parts.ClassificationReading,
            parts.ClassificationModelling,
            parts.ClassificationScoring,
        )
        return task if self.teacher is None else distilled(task)

    OF_SCRATCH = OF_SCRATCH

    def problems(self, of: Options) -> Iterable[str]:
        frames = self.recordings.reads_frames(self.file)
        if self.pretrained is not None and frames:
            yield "--pretrained: reads texts; sequences of numbers have none."
        if self.teacher is not None and frames:
            yield "--teacher: reads texts; sequences of numbers have none."
        if self.stride is not None and frames:
            yield "--stride: reads texts in windows; sequences of numbers have none."
        if self.answer_every is not None and not (frames and self.causal):
            yield "--answer-every is for --causal models of frames."
        if self.carry_every is not None and self.max_length is not None:
            yield "--carry-every reads whole recordings; leave out --max-length."
        if self.numbers and self.series_column is None:
            yield "--numbers needs --series-column, which tells recordings apart."
        if self.pair_column is not None and frames:
            yield "--pair-column is of texts; frames have no pairs."

    def files_within(self) -> dict[str, list[Path | str]]:
        return self.recordings.files_within((self.file, self.validation))

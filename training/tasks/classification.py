"""`seqkeras train classification`: its options, and what it is made of."""

from collections.abc import Iterable
from pathlib import Path

import click

from seqkeras.serving.text.trees import SHAPES
from seqkeras.training.options import (
    DataFile,
    FitOptions,
    Number,
    Options,
    argument,
    at_least,
    option,
    part,
    shown,
)
from seqkeras.training.options.baselines import BaselineOptions
from seqkeras.training.options.calibration import CalibrationOptions
from seqkeras.training.options.distillation import BERT, DistillationOptions
from seqkeras.training.options.encoders import ENCODERS, OF_ENCODER
from seqkeras.training.options.frames import FrameOptions
from seqkeras.training.options.labelled_texts import OF_SCRATCH, LabelledTextOptions
from seqkeras.training.options.members import MemberOptions
from seqkeras.training.options.none_of_these import NoneOfTheseOptions
from seqkeras.training.options.pretrained import PooledOptions
from seqkeras.training.options.sizes import OF_TEXTS, SizeOptions
from seqkeras.training.options.spaces import SMOOTHING
from seqkeras.training.options.subwords import SubwordOptions
from seqkeras.training.task import Task

TREE = "tree"  # the encoder that composes the words of a sentence
OF_TREE = ("encoder", "embedding_dim", "units")  # the options of an encoder that it has
NOT_OF_TREE = tuple(name for name in OF_ENCODER if name not in OF_TREE)
NOT_OF_TREE += ("hops", "pair_column", "stride", "teacher", "none_of_these", "subword_dropout")


class ClassificationOptions(FitOptions, task="classification"):
    """Classify sentences, pairs of sentences, or sequences of numbers.

    Your file looks like this (.csv; .tsv with tabs, and quotes as characters; .jsonl with an object
    a line):

        text,label
        a fine film,good
        "dull, from end to end",bad

    Pairs have their second text in a third column: --pair-column question. The model reads
    WordPieces that are learned from the file; attention sums up the vectors of --encoder. With
    --pretrained FOLDER the model is a fine-tuned BERT with the tokens of that folder.

    Frames of sound, video or sensors: a row for each frame, with --numbers x,y,z --series-column
    series; or a row for each recording, with --frames-column file that names .npy files of (frames,
    numbers); or a .npz file of the arrays "frames", "labels" and "lengths".

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
    beside: BaselineOptions = part(BaselineOptions)
    surety: CalibrationOptions = part(CalibrationOptions)
    sizing: SizeOptions = part(SizeOptions)
    cutting: SubwordOptions = part(SubwordOptions)
    ensemble: MemberOptions = part(MemberOptions)
    strangers: NoneOfTheseOptions = part(NoneOfTheseOptions)
    texts: LabelledTextOptions = part(LabelledTextOptions)
    label_column: str = option("label", str, "Column of labels.")
    encoder: str = option(
        DistillationOptions.encoder,
        click.Choice((*ENCODERS, BERT, TREE)),
        "Layers that read the input: a recurrent cell in both directions, convolutions, a "
        "Transformer; tree is a tree LSTM over the words; bert is a small BERT over the tokens of "
        "--teacher.",
    )
    tree_shape: str | None = option(
        None,
        click.Choice(SHAPES),
        "Shape of the trees of --encoder tree over the words of a text: balanced, or branching to "
        "the left or right. Default: balanced.",
    )
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
    linear: bool | None = option(
        None,
        bool,
        "Add the logits of a linear classifier of the text's words and of n-grams of "
        "characters. Default: true for single texts of at most 512 labels that --encoder reads.",
    )
    label_smoothing: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Share of the target probability that is spread evenly over all labels.",
        search=SMOOTHING,
    )

    SIZES = OF_TEXTS
    SMALL_UP_TO = 500
    USUAL = ("validation", "text_column", "label_column")

    def make(self) -> Task:
        from seqkeras.training.parts import classification as parts
        from seqkeras.training.parts.distilling import distilled

        if self.encoder == TREE:
            from seqkeras.training.parts import sentence_trees as trees

            kinds = trees.SentenceTreeReading, trees.SentenceTreeModelling
        else:
            kinds = parts.ClassificationReading, parts.ClassificationModelling
        task = Task.of(self, *kinds, parts.ClassificationScoring, parts.ClassificationCalibrating)
        return task if self.teacher is None else distilled(task)

    OF_SCRATCH = (*OF_SCRATCH, "tree_shape")

    @property
    def shape(self) -> str:
        """The shape of the trees of --encoder tree."""
        return self.tree_shape or SHAPES[0]

    @property
    def has_linear(self) -> bool:
        """Whether a linear classifier of n-grams stands beside the encoder."""
        return not self._without_linear() if self.linear is None else self.linear

    def _without_linear(self):
        """Return the first option with which there is no linear classifier."""
        given = ("pretrained", "teacher", "pair_column", "stride")
        if self.recordings.reads_frames(self.file):
            return "frames of numbers"
        if self.encoder == TREE:
            return "--encoder tree"
        return next((shown(name) for name in given if getattr(self, name) is not None), None)

    def problems(self, command: Options) -> Iterable[str]:
        if self.linear and (option := self._without_linear()):
            yield f"--linear is for single texts that --encoder reads; leave it out with {option}."
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
        if self.none_label is not None and frames:
            yield "--none-label: is for rows of texts; leave it out with frames."
        if self.encoder != TREE and self.tree_shape is not None:
            yield f"--tree-shape is for --encoder tree; leave it out with --encoder {self.encoder}."
        if self.encoder == TREE:
            if frames:
                yield "--encoder tree reads words; sequences of numbers have none: choose another."
            for name in NOT_OF_TREE:
                if self.is_given(name):
                    yield f"{shown(name)}: --encoder tree has none; leave it or the encoder out."

    def require_files(self) -> None:
        if not self.recordings.reads_frames(self.file):
            self.texts.require_files(self, "label_column")

    def text_files(self) -> list[str]:
        return [] if self.recordings.reads_frames(self.file) else [self.file]

    def files_within(self) -> dict[str, list[Path | str]]:
        return self.recordings.files_within((self.file, self.validation))

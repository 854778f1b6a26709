"""`seqkeras train tagging`: its options, and what it is made of."""

from collections.abc import Iterable
from pathlib import Path

import click

from seqkeras.training.options import (
    DataFile,
    FitOptions,
    Options,
    argument,
    at_least,
    option,
    part,
)
from seqkeras.training.options.baselines import BaselineOptions
from seqkeras.training.options.calibration import CalibrationOptions
from seqkeras.training.options.distillation import DistillationOptions
from seqkeras.training.options.encoders import OF_ENCODER
from seqkeras.training.options.frames import TAG, FrameOptions
from seqkeras.training.options.held_out import held_out_option
from seqkeras.training.options.members import MemberOptions
from seqkeras.training.options.pretrained import PretrainedOptions
from seqkeras.training.options.sizes import SizeOptions
from seqkeras.training.options.spaces import OTHER_SIZE
from seqkeras.training.options.subwords import SubwordOptions
from seqkeras.training.task import Task

# Defaults of what reads words without --pretrained: names have endings, and parts.
OF_WORDS = {"character_filters": 30, "subword_dropout": 0.1}


class TaggingOptions(FitOptions, task="tagging"):
    """Tag the words of sentences, or frames of numbers: names, parts of speech.

    Your file looks like this: a word a line, columns with spaces or tabs between them, an empty
    line behind each sentence, as CoNLL has it. The first column is the word, the last the tag.

        Wolfgang B-PER
        lives O
        in O
        Oslo B-LOC

        She O
        ...

    Or .jsonl with an object a line: {"tokens": ["She", "left"], "tags": ["O", "O"]}. Tags of
    entities may be IOB1, IOB2, IOBES, BILOU or BMES; other tags, such as parts of speech,
    spell no entities. The model reads WordPieces that are learned from the file; a word has the tag
    of its first WordPiece. With --pretrained FOLDER the model is a fine-tuned BERT with the tokens
    of that folder.

    Frames of sound, video or sensors, each with a tag: a row for each frame, with --numbers x,y,z
    and, of several recordings, --series-column series; or a row for each recording, with
    --frames-column file, where file and tag name .npy files; or a .npz file of the arrays "frames",
    "labels" and "lengths".

        series,x,y,z,tag
        a,0.1,9.7,0.4,walk
        a,0.2,9.9,,sit
    """

    file: str = argument(DataFile(), "Training file: CoNLL columns, .jsonl; .csv, .npz of frames.")
    validation: str | None = option(
        None, DataFile(), "Validation file. Default: sentences of FILE."
    )
    held_out: float | None = held_out_option("FILE's sentences")
    split: str = option(
        "documents",
        click.Choice(("documents", "sentences")),
        "Unit that is held out: documents, or blocks of neighbouring sentences in a file without "
        "marks of documents; or sentences, each alone, which flatters the scores.",
    )
    recordings: FrameOptions = part(FrameOptions)
    tuning: PretrainedOptions = part(PretrainedOptions)
    teaching: DistillationOptions = part(DistillationOptions)
    beside: BaselineOptions = part(BaselineOptions)
    surety: CalibrationOptions = part(CalibrationOptions)
    sizing: SizeOptions = part(SizeOptions)
    cutting: SubwordOptions = part(SubwordOptions)
    ensemble: MemberOptions = part(MemberOptions)
    word_column: str | None = option(
        None,
        str,
        "Column of words: a number from 1, or a key in .jsonl. Default: the first, or tokens.",
    )
    tag_column: str | None = option(
        None,
        str,
        "Column of tags: a number, where -1 is the last column; or a name with .jsonl and frames. "
        "Default: the last, or tags.",
    )
    skip_bad: bool = option(
        False,
        bool,
        "Leave out unusable sentences, and sentences where I- begins an entity, and report their "
        "number.",
    )
    batch_size: int = option(16, at_least(1), "Sentences in a batch.")
    passes: int = option(10, at_least(1), "Passes over the training sentences (epochs).")
    vocab_size: int = option(8000, at_least(1), "WordPieces to learn, at most.", search=OTHER_SIZE)
    lowercase: bool = option(False, bool, "Lower-case the text and strip its accents.")
    max_length: int | None = option(
        None,
        at_least(4),
        "Tokens of a sentence (default: 256), whose last words are cut off; or frames of a "
        "recording (default: the longest recording's), which is cut into pieces.",
    )
    crf: bool = option(
        False,
        bool,
        "Learn which tag follows which with a conditional random field; the most probable "
        "sequence of tags answers.",
    )

    SIZES = {
        "small": {"embedding_dim": 64, "units": 64, **OF_WORDS},
        "base": OF_WORDS,
    }
    SMALL_UP_TO = 1_000
    IN_BLOCKS = True
    USUAL = ("validation", "word_column", "tag_column")

    def make(self) -> Task:
        from seqkeras.training.parts import tagging as parts
        from seqkeras.training.parts.distilling import distilled

        kinds = parts.TaggingReading, parts.TaggingModelling, parts.TaggingScoring
        task = Task.of(self, *kinds, parts.TaggingCalibrating)
        return task if self.teacher is None else distilled(task)

    OF_SCRATCH = (*OF_ENCODER, "vocab_size", "lowercase")

    def problems(self, command: Options) -> Iterable[str]:
        frames = self.recordings.reads_frames(self.file)
        if self.pretrained is not None and frames:
            yield "--pretrained: reads texts; sequences of numbers have none."
        if self.teacher is not None and self.crf:
            yield "--crf: a teacher gives each tag alone; leave one of them out."
        if self.crf and self.causal:
            yield "--crf: the most probable sequence needs the last tag; leave out --causal."
        if command.is_given("split") and frames:
            yield "--split: recordings are held out whole; leave it out."
        if command.is_given("split") and self.validation is not None:
            yield "--split: says how FILE is divided; leave it or --validation out."
        if self.teacher is not None and frames:
            yield "--teacher: reads texts; sequences of numbers have none."

    def text_files(self) -> list[str]:
        return [] if self.recordings.reads_frames(self.file) else [self.file]

    def files_within(self) -> dict[str, list[Path | str]]:
        tags = self.tag_column or TAG
        return self.recordings.files_within((self.file, self.validation), tags)

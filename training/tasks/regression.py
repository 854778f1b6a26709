"""`seqkeras train regression`: its options, and what it is made of."""

from collections.abc import Iterable

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
from seqkeras.training.options.decimals import DecimalOptions
from seqkeras.training.options.distillation import DistillationOptions
from seqkeras.training.options.labelled_texts import OF_SCRATCH, LabelledTextOptions
from seqkeras.training.options.members import MemberOptions
from seqkeras.training.options.pretrained import PooledOptions
from seqkeras.training.options.sizes import OF_TEXTS, SizeOptions
from seqkeras.training.options.subwords import SubwordOptions
from seqkeras.training.task import Task


class RegressionOptions(FitOptions, task="regression"):
    """Predict a number for each sentence or pair: similarity, grade, price.

    Your file looks like this (.csv; .tsv with tabs, and quotes as characters; .jsonl with an object
    a line):

        text,pair,number
        a fine film,a good movie,4.2
        a fine film,two dogs run,0

    Pairs have their second text in another column: --pair-column pair. The model reads WordPieces
    that are learned from the file; attention sums up the vectors of --encoder. With --pretrained
    FOLDER the model is a fine-tuned BERT with the tokens of that folder.
    """

    file: str = argument(DataFile(), "Training file: .csv, .tsv or .jsonl.")
    batch_size: int = option(32, at_least(1), "Examples in a batch.")
    passes: int = option(5, at_least(1), "Passes over the training examples (epochs).")
    tuning: PooledOptions = part(PooledOptions)
    teaching: DistillationOptions = part(DistillationOptions)
    beside: BaselineOptions = part(BaselineOptions)
    sizing: SizeOptions = part(SizeOptions)
    cutting: SubwordOptions = part(SubwordOptions)
    ensemble: MemberOptions = part(MemberOptions)
    texts: LabelledTextOptions = part(LabelledTextOptions)
    number_column: str = option("number", str, "Column of numbers.")
    decimals: DecimalOptions = part(DecimalOptions)

    SIZES = OF_TEXTS
    SMALL_UP_TO = 500
    USUAL = ("validation", "text_column", "number_column")
    OF_SCRATCH = OF_SCRATCH
    LEARNS_CLASSES = False

    def make(self) -> Task:
        from seqkeras.training.parts import regression as parts
        from seqkeras.training.parts.distilling import distilled

        task = Task.of(
            self,
            parts.RegressionReading,
            parts.RegressionModelling,
            parts.RegressionScoring,
        )
        return task if self.teacher is None else distilled(task)

    def require_files(self) -> None:
        self.texts.require_files(self, "number_column")

    def text_files(self) -> list[str]:
        return [self.file]

    def problems(self, command: Options) -> Iterable[str]:
        yield from self.decimals.problems_of_columns((self.number_column,), "--number-column")

"""Options of `seqkeras train regression`."""

import dataclasses

from seqkeras.training.options import option
from seqkeras.training.tasks.options.decimals import decimal_comma, decimal_point, require_numbers
from seqkeras.training.tasks.options.labelled_texts import LabelledTextOptions


@dataclasses.dataclass(frozen=True)
class RegressionOptions(LabelledTextOptions):
    """Sentences or pairs, and a number for each: similarities, grades, prices.

    Your file looks like this (.csv; .tsv with tabs, and quotes as characters; .jsonl with an object
    a line):

    \b
        text,pair,number
        a fine film,a good movie,4.2
        a fine film,two dogs run,0

    Pairs have their second text in another column: --pair-column pair. The model reads WordPieces
    that are learned from the file; attention sums up what --encoder makes of them. With
    --pretrained FOLDER it is a BERT that is fine-tuned, which reads its own tokens.
    """

    USUAL = ("validation", "text_column", "number_column")

    LEARNS_CLASSES = False

    number_column: str = option("number", str, "Column of numbers.")
    decimal_point: tuple = decimal_point()
    decimal_comma: tuple = decimal_comma()

    def check(self):
        super().check()
        require_numbers(self, (self.number_column,), "--number-column")

"""Options of `python -m training bilm`."""

import dataclasses

from training.options import (
    FRACTION,
    POSITIVE,
    DataFile,
    FitOptions,
    Number,
    argument,
    at_least,
    option,
)


@dataclasses.dataclass(frozen=True)
class BiLMOptions(FitOptions):
    """Plain text to features of words: ELMo's language model in both directions.

    Your file looks like this: text in UTF-8, plain or .gz, a sentence a line. Several files are
    read one behind the other.

    \b
        The old house is here.
        She left Oslo in May.

    A word is read by its characters, so the model knows features of any word. It learns to tell the
    next word from those before it, and the word before from those behind. The last tenth of the
    text is held out for validation. classification and tagging read the features: --features RUN.
    """

    files: tuple = argument(DataFile(), "Of training: plain text, or .gz.", several=True)
    validation: str | None = option(
        None, DataFile(), "File of validation; without it, the end of the text is held out."
    )
    held_out: float = option(0.1, FRACTION, "Last share of the text that is held out.")
    vocab_size: int = option(10_000, at_least(5), "Words to tell, at most; others are <unk>.")
    max_length: int = option(64, at_least(2), "Words of a row; longer lines are cut into several.")
    word_length: int = option(30, at_least(1), "Characters of a word that are read.")
    character_dim: int = option(16, at_least(1), "Size of a character's embedding.")
    character_widths: int = option(6, at_least(1), "Filters see from 1 to so many characters.")
    character_filters: int = option(
        25, at_least(1), "Filters of width 1; of width w there are w times as many."
    )
    num_highways: int = option(2, at_least(0), "Highway layers over the filters.")
    units: int = option(256, at_least(1), "Memory of each LSTM.")
    projection_dim: int = option(
        128, at_least(1), "Output of each LSTM; features have twice that, one of each direction."
    )
    num_layers: int = option(2, at_least(1), "LSTMs in each direction.")
    dropout: float = option(0.1, Number(0, 1, max_open=True), "Of each LSTM, before the logits.")
    batch_size: int = option(32, at_least(1), "Sentences in each step.")
    passes: int = option(10, at_least(1), "How often the model sees each sentence.")
    learning_rate: float = option(1e-3, POSITIVE, "At the end of the warm-up.")

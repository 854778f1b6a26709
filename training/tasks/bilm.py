"""`seqkeras train bilm`: its options, and what it is made of."""

from seqkeras.training.options import (
    POSITIVE,
    DataFile,
    FitOptions,
    Number,
    argument,
    at_least,
    option,
)
from seqkeras.training.options.held_out import MOST_CHARACTERS, held_out_option
from seqkeras.training.options.spaces import DROPOUT, LAYERS, OTHER_SIZE, SIZE
from seqkeras.training.task import Task


class BiLMOptions(FitOptions, task="bilm"):
    """Train ELMo's language model in both directions on plain text, for features of words.

    Your file looks like this: text in UTF-8, plain or .gz, a sentence a line. Several files are
    read one behind the other.

        The old house is here.
        She left Oslo in May.

    A word is read by its characters, so the model knows features of any word. It learns to predict
    the next word from earlier words, and the previous word from later words. The last tenth of the
    text is held out for validation. classification and tagging read the features: --features RUN.
    """

    files: tuple = argument(DataFile(), "Training files: plain text or .gz.", several=True)
    validation: str | None = option(None, DataFile(), "Validation file. Default: the text's end.")
    held_out: float | None = held_out_option(
        "the text, from its end,", most=f"{MOST_CHARACTERS:,} characters"
    )
    vocab_size: int = option(
        10_000,
        at_least(5),
        "Words that the model predicts, at most; other words are <unk>.",
        search=OTHER_SIZE,
    )
    max_length: int = option(64, at_least(2), "Words of a row; longer lines become several rows.")
    word_length: int = option(30, at_least(1), "Characters that are read of a word, at most.")
    character_dim: int = option(16, at_least(1), "Size of the character embeddings.")
    character_widths: int = option(
        6,
        at_least(1),
        "Width of the widest character filters; there are filters of each width from 1.",
    )
    character_filters: int = option(
        25, at_least(1), "Filters of width 1; there are w times as many of width w."
    )
    num_highways: int = option(2, at_least(0), "Highway layers over the character filters.")
    units: int = option(256, at_least(1), "Size of each LSTM's memory.", search=SIZE)
    projection_dim: int = option(
        128,
        at_least(1),
        "Size of each LSTM's output; a word's feature joins the outputs of both directions.",
    )
    num_layers: int = option(2, at_least(1), "LSTM layers in each direction.", search=LAYERS)
    dropout: float = option(
        0.1,
        Number(0, 1, max_open=True),
        "Dropout rate of each LSTM's inputs and before the logits.",
        search=DROPOUT,
    )
    batch_size: int = option(32, at_least(1), "Sentences in a batch.")
    passes: int = option(10, at_least(1), "Passes over the sentences (epochs).")
    learning_rate: float = option(1e-3, POSITIVE, "Learning rate at the end of warm-up.")

    USUAL = ("vocab_size", "units", "num_layers")

    def make(self) -> Task:
        from seqkeras.training.parts import bilm as parts

        return Task.of(self, parts.BiLMReading, parts.BiLMModelling, parts.BiLMScoring)

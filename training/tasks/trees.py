"""`seqkeras train trees`: its options, and what it is made of."""

import click

from seqkeras.training.options import (
    FRACTION,
    DataFile,
    FitOptions,
    Number,
    argument,
    at_least,
    option,
)
from seqkeras.training.task import Task


class TreesOptions(FitOptions, task="trees"):
    """Classify every node of sentence trees: sentiment, kinds of phrases.

    Your file looks like this, a tree a line, as in the Stanford Sentiment Treebank: a node is its
    label, then a word or nodes.

    \b
        (3 (2 A) (4 (3 fine) (2 film)))
        (0 (2 It) (1 (1 drags) (2 on)))

    The root must have a label; other nodes may lack one. A recursive network gives every node a
    class, from the words up to the root.
    """

    file: str = argument(DataFile(), "Training file: a tree in each line.")
    validation: str | None = option(None, DataFile(), "Validation file. Default: trees of FILE.")
    held_out: float = option(0.1, FRACTION, "Share of FILE's trees that is held out.")
    batch_size: int = option(25, at_least(1), "Trees in a batch.")
    passes: int = option(10, at_least(1), "Passes over the training trees (epochs).")
    vocab_size: int = option(
        30_000, at_least(3), "Words that the model knows: the most frequent ones."
    )
    min_count: int = option(1, at_least(1), "Occurrences from which on the model knows a word.")
    lowercase: bool = option(True, bool, "Lower-case the words.")
    cell: str = option(
        "binary",
        click.Choice(["binary", "child_sum", "tree_rnn"]),
        "Network: the binary or the child-sum tree LSTM, or a simple recursive network.",
    )
    embedding_dim: int = option(128, at_least(1), "Size of the word embeddings.")
    units: int = option(128, at_least(1), "Size of a node's state.")
    max_nodes: int = option(512, at_least(1), "Nodes of a tree, at most.")
    dropout: float = option(
        0.5, Number(0, 1, max_open=True), "Dropout rate of embeddings and before the logits."
    )

    USUAL = ("cell", "embedding_dim", "units", "dropout")

    def make(self) -> Task:
        from seqkeras.training.parts import trees as parts

        return Task.of(self, parts.TreeReading, parts.TreeModelling, parts.TreeScoring)

"""Options of `python -m training trees`."""

import dataclasses

import click

from training.options import FRACTION, DataFile, FitOptions, Number, argument, at_least, option


@dataclasses.dataclass(frozen=True)
class TreesOptions(FitOptions):
    """Trees of sentences, with a label at every node: sentiment, kinds of phrases.

    Your file looks like this, a tree a line, as in the Stanford Sentiment Treebank: a node is its
    label, then a word or nodes.

    \b
        (3 (2 A) (4 (3 fine) (2 film)))
        (0 (2 It) (1 (1 drags) (2 on)))

    The root must have a label, other nodes may be without. A recursive network gives every node a
    class, from the words up to the root.
    """

    file: str = argument(DataFile(), "Of training: a tree a line.")
    validation: str | None = option(
        None, DataFile(), "File of validation; without it, some trees of FILE are held out."
    )
    held_out: float = option(0.1, FRACTION, "Share of FILE's trees that are held out.")
    batch_size: int = option(25, at_least(1), "Trees in each step.")
    passes: int = option(10, at_least(1), "How often the model sees each training tree.")
    vocab_size: int = option(30_000, at_least(3), "Words to know, at most, the most frequent ones.")
    min_count: int = option(1, at_least(1), "How often a word must come to be known.")
    lowercase: bool = option(True, bool, "Read capitals as small letters.")
    cell: str = option(
        "binary",
        click.Choice(["binary", "child_sum", "tree_rnn"]),
        "The binary or the child-sum tree LSTM, or a simple recursive network.",
    )
    embedding_dim: int = option(128, at_least(1), "Size of the word embeddings.")
    units: int = option(128, at_least(1), "State of a node.")
    max_nodes: int = option(512, at_least(1), "Nodes of a tree, at most.")
    dropout: float = option(
        0.5, Number(0, 1, max_open=True), "Of embeddings and before the logits."
    )

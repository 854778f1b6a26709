"""`seqkeras train trees`: its options, and what it is made of."""

from collections.abc import Iterable

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
from seqkeras.training.options.held_out import held_out_option
from seqkeras.training.options.spaces import DROPOUT, OTHER_CHOICE, OTHER_SIZE, SIZE
from seqkeras.training.task import Task

BRACKETS = "brackets"


class TreesOptions(FitOptions, task="trees"):
    """Classify sentence trees, and each of their nodes: sentiment, kinds of phrases.

    Your file looks like this, a tree a line, as in the Stanford Sentiment Treebank: a node is its
    label, then a word or nodes.

        (3 (2 A) (4 (3 fine) (2 film)))
        (0 (2 It) (1 (1 drags) (2 on)))

    The root must have a label; other nodes may lack one. A recursive network gives every node a
    class, from the words up to the root.

    Or plain sentences (.csv, .tsv or .jsonl with the columns text and label), over whose words
    --tree-shape balanced, left or right makes the trees.
    """

    file: str = argument(DataFile(), "Training file: a tree in each line, or texts and labels.")
    validation: str | None = option(None, DataFile(), "Validation file. Default: trees of FILE.")
    held_out: float | None = held_out_option("FILE's trees")
    beside: BaselineOptions = part(BaselineOptions)
    batch_size: int = option(25, at_least(1), "Trees in a batch.")
    passes: int = option(10, at_least(1), "Passes over the training trees (epochs).")
    tree_shape: str = option(
        BRACKETS,
        click.Choice((BRACKETS, *SHAPES)),
        "Trees of FILE: written in brackets; or made over the words of plain texts, balanced or "
        "branching to the left or right.",
    )
    text_column: str | None = option(None, str, "Column of plain texts. Default: text.")
    label_column: str | None = option(None, str, "Column of the texts' labels. Default: label.")
    vocab_size: int = option(
        30_000,
        at_least(3),
        "Words that the model knows: the most frequent ones.",
        search=OTHER_SIZE,
    )
    min_count: int = option(1, at_least(1), "Occurrences from which on the model knows a word.")
    lowercase: bool = option(True, bool, "Lower-case the words.")
    cell: str = option(
        "binary",
        click.Choice(["binary", "child_sum", "tree_rnn"]),
        "Network: the binary or the child-sum tree LSTM, or a simple recursive network.",
        search=OTHER_CHOICE,
    )
    embedding_dim: int = option(128, at_least(1), "Size of the word embeddings.", search=OTHER_SIZE)
    units: int = option(128, at_least(1), "Size of a node's state.", search=SIZE)
    max_nodes: int = option(512, at_least(1), "Nodes of a tree, at most.")
    dropout: float = option(
        0.5,
        Number(0, 1, max_open=True),
        "Dropout rate of embeddings and before the logits.",
        search=DROPOUT,
    )

    @property
    def shape(self) -> str | None:
        """The shape of trees over plain texts; None for trees in brackets."""
        return None if self.tree_shape == BRACKETS else self.tree_shape

    USUAL = ("tree_shape", "cell", "embedding_dim", "units", "dropout")

    def problems(self, command: Options) -> Iterable[str]:
        for name in ("text_column", "label_column"):
            if self.tree_shape == BRACKETS and self.is_given(name):
                yield (
                    f"{shown(name)}: trees in brackets have no columns; leave it out, or choose "
                    f"--tree-shape {', '.join(SHAPES[:-1])} or {SHAPES[-1]}, which reads plain "
                    "texts."
                )

    def make(self) -> Task:
        from seqkeras.training.parts import trees as parts

        return Task.of(self, parts.TreeReading, parts.TreeModelling, parts.TreeScoring)

"""Trees with a label at every node, or trees over plain texts with a label, from a user's file."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.table import Table

from seqkeras.data.batches import Sequences
from seqkeras.data.columns import read_columns
from seqkeras.data.nested import NestedSequences
from seqkeras.data.texts import DataError, lines_of, read_text
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import TokenAccuracy, exact_match
from seqkeras.models import TreeClassifier
from seqkeras.runs import RunError
from seqkeras.serving.categories import category_text
from seqkeras.serving.text.trees import NO_NODE, Nodes, Tree, parse_tree, tree_over
from seqkeras.tokenizers import PAD, WordTable, word_places
from seqkeras.training.baselines import Measure, Method, ratio, right_labels
from seqkeras.training.console import console, say_merged, say_single
from seqkeras.training.parts.baselines.phrases import classes_of_trees
from seqkeras.training.parts.splitting import split
from seqkeras.training.task import Modelling, Reading, Scoring
from seqkeras.training.wording import counted, listed

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer

NO_LABEL = -1  # the target of a node without one
SENTIMENT = ("0", "1", "2", "3", "4")  # labels of which 2 is neutral


class Example(NamedTuple):
    """A tree in brackets or a plain text, its root's label, its nodes, and its file and line."""

    text: str
    target: str
    nodes: Nodes
    where: str


class TreeReading(Reading):
    """Trees with a label at every node, or over plain texts with a label."""

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        train = self._examples(options.file, options.shape)
        if options.validation is not None:
            validation = self._examples(options.validation, options.shape)
        else:
            train, validation = split(train, options, _labels_of_one, "tree")
        labels = _labels_of(train)
        nodes_of = Counter(label for tree in train for label in _labels_of_nodes(tree))
        say_single(options.file, nodes_of, unit="node")
        if len(labels) < 2:
            raise RunError(f"{options.file}: all nodes have the label {labels[0]!r:.40}.")
        self._require_known(validation, labels)
        self.num_children = self._most_children([*train, *validation])
        nodes = sum(len(example.nodes) for example in train)
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation trees, "
            f"{nodes:,} nodes, {len(labels):,} labels"
        )
        return train, validation

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        examples = []
        for path in paths:
            trees = self._examples(path, settings.get("tree_shape"))
            self._require_known(trees, settings["labels"])
            examples += trees
        return examples

    def _examples(self, path, shape):
        examples = []
        for where, text, tree in _written_trees(path) if shape is None else self._over(path, shape):
            nodes = Nodes(tree)
            if len(nodes) > self.options.max_nodes:
                raise DataError(
                    f"{where}: a tree of {len(nodes):,} nodes; the limit is --max-nodes "
                    f"{self.options.max_nodes:,}."
                )
            examples.append(Example(text, str(tree.label), nodes, where))
        return examples

    def _over(self, path, shape):
        """Yield the place, the text and the `Tree` over it of each row of a file."""
        columns = self.options.text_column or "text", self.options.label_column or "label"
        rows = read_columns(path, columns, options=("--text-column", "--label-column"))
        say_merged(path, columns[1], [label for _, (_, label) in rows])
        for line, (text, label) in rows:
            where = f"{path}, line {line}"
            words = words_of(text)
            if not words:
                raise DataError(f"{where}: {columns[0]!r} has no word, {text!r:.40}.")
            yield where, text, labelled_tree(words, shape, category_text(label))

    def _require_known(self, examples, labels):
        for example in examples:
            unknown = sorted(_labels_of_one(example) - {*labels})
            if unknown:
                raise RunError(
                    f"{example.where}: the label {unknown[0]!r:.40} is not among those that are "
                    f"trained, {listed(labels)}."
                )

    def _most_children(self, examples):
        most = max(len(below) for example in examples for below in example.nodes.children)
        if most > 2 and self.options.cell == "binary":
            raise RunError(
                f"{self.options.file}: a node has {most} children, and --cell binary reads two; "
                "choose --cell child_sum or tree_rnn."
            )
        return max(most, 2)

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return word_table(self.options, examples, self.options.min_count)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield "inputs", "words", map(words_in, examples)

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        shape = self.options.shape
        made = {} if shape is None else {"tree_shape": shape}
        return {
            "pipeline": "Classify",
            "limits": {"source_length": self.options.max_nodes},
            "settings": {"labels": _labels_of(examples)} | made,
        }


class TreeModelling(Modelling):
    """Trees to a recursive network with logits at each node."""

    validation_loss = True

    @property
    def cell(self) -> str:
        """The name of the network, see `TreeClassifier`."""
        return self.options.cell

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        lookup = run.tokenizers["words"].lookup
        index_of = {label: index for index, label in enumerate(run.record.settings["labels"])}
        rows = [example.nodes for example in examples]
        token_ids = Sequences(
            [
                [PAD if tree.word is None else lookup(tree.word) for tree in row.trees]
                for row in rows
            ]
        )
        children = NestedSequences(
            [row.children for row in rows], self.reading.num_children, NO_NODE
        )
        targets = [
            [NO_LABEL if tree.label is None else index_of[str(tree.label)] for tree in row.trees]
            for row in rows
        ]
        inputs = {
            "token_ids": token_ids,
            "lengths": token_ids.lengths,
            "children": children,
            "levels": NestedSequences([row.levels for row in rows], padding=NO_NODE),
        }
        return inputs, Sequences(targets, padding=NO_LABEL), token_ids.lengths

    def model(self, run: RunFiles) -> keras.Model:
        options = self.options
        model = TreeClassifier(
            len(run.tokenizers["words"].words),
            options.embedding_dim,
            options.units,
            len(run.record.settings["labels"]),
            self.cell,
            self.reading.num_children,
            options.dropout,
        )
        model.build(None)
        return model

    def loss(self) -> Any:
        return SmoothedCrossEntropy(0.0, ignore_class=NO_LABEL)

    def metrics(self) -> Any:
        return [TokenAccuracy(ignore_class=NO_LABEL, name="accuracy")]


class TreeScoring(Scoring):
    """Classes that are right, of roots and of all nodes."""

    asked = {"nodes": True}

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        scores = self.scores({"validation": (examples, answers)})
        by_part = {
            f"{name.replace('_', ' ')} right": scores[name] for name in ("roots", "all_nodes")
        }
        right = {name: part_scores["accuracy"] for name, part_scores in by_part.items()}
        binary = {
            f"{name}, binary": part_scores["binary_accuracy"]
            for name, part_scores in by_part.items()
            if part_scores.get("binary_accuracy") is not None
        }
        return right | binary

    def methods(self, train: Sequence[Any], run: RunFiles) -> list[Method]:
        return classes_of_trees(train, run.record.settings["labels"], self.options.seed)

    def compared_by(self) -> Measure:
        return Measure("roots right", ratio)

    def sums(self, examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray:
        return right_labels(examples, answers)

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        roots = [(answer, example.target) for example, answer in zip(examples, answers)]
        nodes = [
            (node, str(tree.label))
            for example, answer in zip(examples, answers, strict=True)
            for node, tree in zip(answer.nodes, _written(example), strict=True)
            if tree.label is not None
        ]
        scores: dict[str, Any] = {"trees": len(roots), "nodes": len(nodes)}
        for name, rows in (("roots", roots), ("all_nodes", nodes)):
            labels = [answer.labels[0] for answer, _ in rows]
            scores[name] = {"accuracy": exact_match(labels, [target for _, target in rows])}
            if {*roots[0][0].scores} == {*SENTIMENT}:
                scores[name]["binary_accuracy"] = binary_accuracy(rows)
        return scores

    def table(self, scores: Mapping[str, Any]) -> Any:
        table = Table(title=f"of {counted(scores['trees'], 'trees')}")
        table.add_column("")
        for name in scores["roots"]:
            table.add_column(name.replace("_", " "), justify="right")
        for name in ("roots", "all_nodes"):
            table.add_row(name.replace("_", " "), *(f"{v:.2%}" for v in scores[name].values()))
        return table

    def summary(self, scores: Mapping[str, Any]) -> str:
        return (
            f"right are {scores['roots']['accuracy']:.2%} of the roots, "
            f"{scores['all_nodes']['accuracy']:.2%} of all nodes"
        )


def words_of(text: str) -> list[str]:
    """Return the words of a plain text."""
    return [text[start:end] for start, end in word_places(text)]


def labelled_tree(words: list[str], shape: str, label: str) -> Tree:
    """Return a `Tree` over words whose root has a label."""
    return dataclasses.replace(tree_over(words, shape), label=label)


def word_table(options: Any, examples: Sequence[Any], min_count: int = 1) -> dict[str, Tokenizer]:
    """Return a dictionary of the table of the words that `Example`s have."""
    words = itertools.chain.from_iterable(map(words_in, examples))
    table = WordTable.learn(words, options.lowercase, min_count)
    return {"words": WordTable(table.words[: options.vocab_size], options.lowercase)}


def _written_trees(path):
    """Yield the place, the text and the `Tree` of each line of a file."""
    for line, text in enumerate(lines_of(read_text(path)), start=1):
        if not text.strip():
            continue
        where = f"{path}, line {line}"
        try:
            tree = parse_tree(text)
        except ValueError as error:
            raise DataError(f"{where}: not a tree: {error}.") from error
        if tree.label is None:
            raise DataError(f"{where}: the root has no label.")
        yield where, text.strip(), tree


def words_in(example: Example) -> Any:
    """Return the words of an example."""
    return tuple(tree.word for tree in example.nodes.trees if tree.word is not None)


def _written(example):
    """Return the nodes of a tree in the order of the text."""
    return [example.nodes.trees[index] for index in example.nodes.written]


def _labels_of(examples):
    return sorted(set().union(*map(_labels_of_one, examples)))


def _labels_of_one(example):
    return {*_labels_of_nodes(example)}


def _labels_of_nodes(example):
    return [str(tree.label) for tree in example.nodes.trees if tree.label is not None]


def binary_accuracy(rows: Sequence[tuple[Any, str]]) -> float | None:
    """Return the share of rows that are not neutral whose side, good or bad, is the likelier one.

    Reference: Socher et al. 2013, section 5, https://aclanthology.org/D13-1170
    """
    sides = [
        (answer.scores["3"] + answer.scores["4"] > answer.scores["0"] + answer.scores["1"], target)
        for answer, target in rows
        if target != "2"
    ]
    return sum(good == (target in "34") for good, target in sides) / len(sides) if sides else None

"""Classes of the nodes of trees by the words under them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from seqkeras.serving.results import Classification, Node
from seqkeras.serving.text.trees import Tree
from seqkeras.training.baselines import Method, sampled
from seqkeras.training.parts.baselines.texts import (
    classifications,
    classifier_of_texts,
    most_characters,
    name_of_features,
)

PHRASES = 1.5  # characters of the phrases that are learned, of the sentences' characters


class Phrase(NamedTuple):
    """The words under a node, and its label, if it has one."""

    text: str
    target: str | None


def classes_of_trees(examples: Sequence[Any], labels: Sequence[str], seed: int) -> list[Method]:
    """Return the `Method`s of trees with a label at the root, and at nodes.

    Args:
        examples: training examples, with `nodes` of `seqkeras.serving.text.trees`.
        labels: labels of the model.
        seed: of the rows on which the penalty is chosen.
    """
    roots, nodes = [], []
    for example in examples:
        root, *others = phrases(example)
        roots.append(root)
        nodes += [phrase for phrase in others if phrase.target is not None]
    of_roots = sum(len(root.text) for root in roots)
    of_nodes = max(sum(len(phrase.text) for phrase in nodes), 1)
    room = min(most_characters(labels) - of_roots, PHRASES * of_roots)
    kept, sample = sampled(nodes, max(0, len(nodes) * room / of_nodes), "phrases")

    def learned(others):
        classify = classifier_of_texts([*roots, *kept], labels, seed)
        of_trees = [[*phrases(other)] for other in others]
        answers = iter(classify([phrase.text for tree in of_trees for phrase in tree]))
        return [_answer([next(answers) for _ in tree]) for tree in of_trees]

    texts = [phrase.text for phrase in (*roots, *kept)]
    shares = [
        [Counter(phrase.target for phrase in rows)[label] / len(rows) for label in labels]
        for rows in (roots, [*roots, *nodes])
    ]
    of_root, of_node = classifications(labels, labels, np.array(shares))

    def constant(others):
        return [_answer([of_root] + [of_node] * (len(other.nodes) - 1)) for other in others]

    return [
        Method("most frequent class", constant),
        Method(name_of_features(texts), learned, sample and f"the sentences and {sample}"),
    ]


def phrases(example: Any) -> list[Phrase]:
    """Return the `Phrase` of each node in the order of the text, the root first."""
    trees = [example.nodes.trees[index] for index in example.nodes.written]
    return [
        Phrase(" ".join(_words(tree)), None if tree.label is None else str(tree.label))
        for tree in trees
    ]


def _words(tree: Tree) -> Iterator[str]:
    if tree.word is not None:
        yield tree.word
    for child in tree.children:
        yield from _words(child)


def _answer(of_nodes):
    """Return the answer of a tree from the answers of its nodes, the root first."""
    nodes = tuple(Node("", answer.labels, answer.score, answer.scores) for answer in of_nodes)
    root = of_nodes[0]
    return Classification(root.labels, root.score, root.scores, nodes)

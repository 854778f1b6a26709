"""`Classify` while it trains, of trees: a class for every node."""

import numpy as np

from seqkeras.serving.pipelines.classify import ranked_classes
from seqkeras.serving.pipelines.model import softmax
from seqkeras.serving.pipelines.trees import TreeRow
from seqkeras.serving.results import Classification, Node
from seqkeras.serving.text.trees import Nodes, node_arrays, parse_tree
from seqkeras.training.compiling import OncePerModel

BATCH = 128


class ClassifyTrees:
    """Trees in brackets to `Classification`s with their nodes.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model is a `seqkeras.models.TreeClassifier`.
    """

    def __init__(self, run):
        self.words, self.labels = run.tokenizers["words"], run.record.settings["labels"]
        self.limit = run.record.limits["source_length"]
        self.logits = OncePerModel(_logits_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        logits_of, num_children = self.logits(model), model.sizes["num_children"]
        rows = [TreeRow(Nodes(parse_tree(text))) for text in texts]
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        answers = [None] * len(rows)
        for start in range(0, len(rows), BATCH):
            places = order[start : start + BATCH]
            nodes = [rows[place].nodes for place in places]
            logits = np.asarray(logits_of(node_arrays(nodes, self.words.lookup, num_children)))
            for place, of_nodes in zip(places, softmax(logits).tolist()):
                row = rows[place]
                answers[place] = self._classification(row, of_nodes[: len(row)])
            if advance:
                advance(len(places))
        return answers

    def fits(self, text):
        """Return whether a tree has no more nodes than the limit."""
        return len(Nodes(parse_tree(text))) <= self.limit

    def _classification(self, row, of_nodes):
        classes = [ranked_classes(self.labels, scores) for scores in of_nodes]
        nodes = tuple(Node(text, *classes[place]) for place, text in row.written())
        return Classification(*classes[0], nodes)


def _logits_of(model):
    return lambda arrays: model(arrays, training=False)

"""`Classify` while it trains, of trees: a class for every node."""

import numpy as np

from seqkeras.decoding import compiled
from serving.pipelines.model import softmax
from serving.pipelines.trees import TreeRow
from serving.results import Classification, Node
from serving.text.trees import NO_NODE, Nodes, node_arrays, parse_tree

BATCH = 128


class ClassifyTrees:
    """Trees in brackets to `Classification`s with their nodes.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model is a `seqkeras.models.TreeClassifier`.
    """

    def __init__(self, run):
        self.words, self.labels = run.tokenizers["words"], run.record.settings["labels"]
        self.limit = run.record.limits["source_length"]
        self.model = None

    def __call__(self, model, texts, advance=None):
        """The answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        if model is not self.model:
            self.model = model
            self.logits = compiled(lambda arrays: model(arrays, training=False))
        rows = [TreeRow(Nodes(parse_tree(text))) for text in texts]
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        answers = [None] * len(rows)
        for start in range(0, len(rows), BATCH):
            places = order[start : start + BATCH]
            logits = np.asarray(self.logits(self._arrays([rows[place].nodes for place in places])))
            for place, of_nodes in zip(places, softmax(logits).tolist()):
                answers[place] = self._classification(rows[place], of_nodes)
            if advance:
                advance(len(places))
        return answers

    def fits(self, text):
        """Whether a tree has no more nodes than the limit."""
        return len(Nodes(parse_tree(text))) <= self.limit

    def _arrays(self, nodes):
        arrays = node_arrays(nodes, self.words.lookup)
        missing = self.model.sizes["num_children"] - arrays["children"].shape[-1]
        arrays["children"] = np.pad(
            arrays["children"], [(0, 0), (0, 0), (0, missing)], constant_values=NO_NODE
        )
        return arrays

    def _classification(self, row, of_nodes):
        nodes = tuple(Node(text, *self._classes(of_nodes[place])) for place, text in row.written())
        return Classification(*self._classes(of_nodes[0]), nodes)

    def _classes(self, scores):
        ranked = dict(sorted(zip(self.labels, scores), key=lambda item: -item[1]))
        best = next(iter(ranked))
        return (best,), ranked[best], ranked

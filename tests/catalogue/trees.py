"""Recursive networks, on two small trees: a row for each."""

from seqkeras.data.trees import parse_tree, tree_arrays
from seqkeras.models import TreeClassifier
from seqkeras.recurrent import TreeLSTM, TreeRNN
from tests.arrays import floats
from tests.catalogue.case import Case, D, U

BINARY = ["(3 (2 a) (4 (2 b) (2 c)))", "(1 (0 (2 (2 c) (1 a)) (2 d)) (3 b))"]
ANY = ["(3 (2 a) (4 (2 b) (2 c) (1 a)) (0 d))", "(1 (0 (2 (2 c) (1 a) (0 b))))"]
IDS = {"a": 2, "b": 3, "c": 4, "d": 5}


def arrays(texts):
    return tree_arrays([parse_tree(text) for text in texts], IDS)


def layer_inputs(texts):
    def inputs():
        made = arrays(texts)
        nodes = made["token_ids"].shape[1]
        return {
            "features": floats(len(texts), nodes, D),
            "children": made["children"],
            "levels": made["levels"],
            "node_mask": made["labels"] >= 0,
        }

    return inputs


def model_inputs(texts):
    def inputs():
        made = arrays(texts)
        return {name: made[name] for name in ("token_ids", "lengths", "children", "levels")}

    return inputs


NODES = {"features": 1, "children": 1, "node_mask": 1}
LAYERS = [
    Case(
        "TreeRNN",
        lambda: TreeRNN(U, return_state=True),
        layer_inputs(BINARY),
        NODES,
        mask="node_mask",
    ),
    Case(
        "TreeLSTM(binary)",
        lambda: TreeLSTM(U, kind="binary", return_state=True),
        layer_inputs(BINARY),
        NODES,
        mask="node_mask",
    ),
    Case("TreeLSTM(child_sum)", lambda: TreeLSTM(U), layer_inputs(ANY), NODES, mask="node_mask"),
]


def classifier_case(cell, texts, num_children):
    def make():
        return TreeClassifier(
            vocab_size=17,
            embedding_dim=7,
            units=11,
            num_classes=5,
            cell=cell,
            num_children=num_children,
            dropout=0.3,
        )

    lengths = {"token_ids": 1, "children": 1}
    return Case(f"TreeClassifier({cell})", make, model_inputs(texts), lengths)


CASES = [
    *LAYERS,
    classifier_case("tree_rnn", BINARY, 2),
    classifier_case("binary", BINARY, 2),
    classifier_case("child_sum", ANY, 3),
]

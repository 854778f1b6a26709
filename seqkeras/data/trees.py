"""Labelled trees of the Stanford Sentiment Treebank, `(3 (2 The) (4 (2 best) (2 one)))`, as arrays.

It leaves out what a treebank has beside labels and words: tags, traces, empty nodes.
"""

import dataclasses
import re
from pathlib import Path

import numpy as np

TOKEN = re.compile(r"[()]|[^() \t\r\n]+")  # a word may hold a no-break space: "8 1\/2"
ESCAPES = {"-LRB-": "(", "-RRB-": ")", r"\/": "/", r"\*": "*"}
ESCAPED = re.compile("|".join(map(re.escape, ESCAPES)))


@dataclasses.dataclass(frozen=True)
class Tree:
    """A node and all that is under it.

    Args:
        label: of the node, an integer.
        children: trees, from left to right; none for a leaf.
        word: of a leaf; None elsewhere.
    """

    label: int
    children: tuple = ()
    word: str | None = None


def read_trees(path):
    """The trees of a file, one a line; empty lines are passed over.

    Raises:
        ValueError: if a line is no tree; it names the line.
    """
    trees = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            try:
                trees.append(parse_tree(line))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
    return trees


def parse_tree(text):
    """The tree that a bracketed text spells.

    Raises:
        ValueError: if the text is no tree; it says what is wrong.
    """
    tokens = TOKEN.findall(text)
    open_nodes, finished = [], None
    for place, token in enumerate(tokens):
        if finished is not None:
            raise ValueError(f"expected one tree; received more after it: {token!r}")
        if token == "(":
            open_nodes.append((_label(tokens, place + 1), []))
        elif not open_nodes:
            raise ValueError(f"expected a tree in brackets; received {token!r}")
        elif token != ")":
            if tokens[place - 1] != "(":  # else it is the label, which has been read
                open_nodes[-1][1].append(token)
        else:
            node = _closed(*open_nodes.pop())
            if open_nodes:
                open_nodes[-1][1].append(node)
            else:
                finished = node
    if finished is None:
        raise ValueError(f"expected {len(open_nodes)} more closing brackets")
    return finished


def _label(tokens, place):
    if place >= len(tokens) or not tokens[place].isdecimal():
        received = tokens[place] if place < len(tokens) else "the end"
        raise ValueError(f"expected a number after '(', the node's label; received {received!r}")
    return int(tokens[place])


def _closed(label, content):
    if len(content) == 1 and isinstance(content[0], str):
        word = ESCAPED.sub(lambda found: ESCAPES[found[0]], content[0])
        return Tree(label, word=word)
    if not content or not all(isinstance(each, Tree) for each in content):
        raise ValueError(f"expected one word, or trees, under a node; received {content}")
    return Tree(label, children=tuple(content))


def tree_arrays(trees, ids, unknown_id=1):
    """A batch of trees as the arrays that `seqkeras.recurrent.TreeLSTM` reads.

    Every node has a place in its row, the root the first, higher nodes before lower ones.

    Args:
        trees: list of `Tree`.
        ids: word -> token id, from 2 on; 0 is padding and every node without a word.
        unknown_id: of words that are not in `ids`.

    Returns:
        A dictionary of int32 arrays, where N is the most nodes, C the most children, H the most
        levels over the leaves and W the most nodes in one of these levels (each at least 1):
        token_ids (B, N); lengths (B,), numbers of nodes; children (B, N, C), places, -1 for none;
        levels (B, H, W), the places of the nodes at height 1, 2, ..., -1 for none; labels (B, N),
        -1 for none.

    Raises:
        ValueError: if there are no trees.
    """
    if not trees:
        raise ValueError("tree_arrays: needs one tree at least; received none.")
    rows = [_Row(tree) for tree in trees]
    token_ids = [[ids.get(word, unknown_id) if word else 0 for word in row.words] for row in rows]
    return {
        "token_ids": _padded(token_ids, 2, 0),
        "lengths": np.array([len(row.labels) for row in rows], np.int32),
        "children": _padded([row.children for row in rows], 3, -1),
        "levels": _padded([row.levels for row in rows], 3, -1),
        "labels": _padded([row.labels for row in rows], 2, -1),
    }


class _Row:
    """A tree's nodes in the order of their places: labels, words, children, levels."""

    def __init__(self, tree):
        nodes, children = [tree], []
        for node in nodes:  # which grows: parents come before their children
            children.append(list(range(len(nodes), len(nodes) + len(node.children))))
            nodes.extend(node.children)
        heights = [0] * len(nodes)
        for place in reversed(range(len(nodes))):
            heights[place] = max((heights[child] + 1 for child in children[place]), default=0)
        order = sorted(range(len(nodes)), key=lambda place: -heights[place])
        places = {before: now for now, before in enumerate(order)}
        self.labels = [nodes[each].label for each in order]
        self.words = [nodes[each].word for each in order]
        self.children = [[places[child] for child in children[each]] for each in order]
        self.levels = [
            [places[each] for each in order if heights[each] == height]
            for height in range(1, heights[0] + 1)
        ]


def _padded(ragged, depth, fill):
    """Lists of lists as an int32 array, each axis as long as its longest list and at least 1."""
    shape, level = [len(ragged)], ragged
    for _ in range(depth - 1):
        shape.append(max([1, *(len(each) for each in level)]))
        level = [each for one in level for each in one]
    array = np.full(shape, fill, np.int32)
    for row, values in enumerate(ragged):
        if depth == 2:
            array[row, : len(values)] = values
        else:
            for place, each in enumerate(values):
                array[row, place, : len(each)] = each
    return array

"""Bracketed trees, `(3 (2 The) (4 (2 best) (2 one)))`, and trees over plain words, as arrays.

The format of the Stanford Sentiment Treebank and the Penn Treebank: a node is its label, which may
be missing, then a word or nodes. Does not support traces and empty nodes.
"""

import dataclasses
import functools
import re

import numpy as np

from .packing import pad, pad_nested
from .vocabularies import PAD

TOKEN = re.compile(r"[()]|[^() \t\r\n]+")  # a word may hold a no-break space: "8 1\/2"
ESCAPES = {"-LRB-": "(", "-RRB-": ")", r"\/": "/", r"\*": "*"}
ESCAPED = re.compile("|".join(map(re.escape, ESCAPES)))
NO_NODE = -1
SHAPES = ("balanced", "left", "right")  # of trees over plain words
MOST_SHOWN = 40  # characters of a wrong text


@dataclasses.dataclass(frozen=True)
class Tree:
    """A node with its subtrees.

    Args:
        label: label of the node: a number, or a name such as "NP"; None if missing.
        children: trees, from left to right; none for a leaf.
        word: word of a leaf; None elsewhere.

    Example:
        >>> from seqkeras.data.trees import Tree
        >>> leaf = Tree(label=4, word="good")
        >>> Tree(label=3, children=(Tree(2, word="very"), leaf)).children[1].word
        'good'
    """

    label: int | str | None
    children: tuple = ()
    word: str | None = None


def parse_tree(text):
    """Parse a bracketed text as a tree.

    Raises:
        ValueError: if the text is not a tree; the message says what is wrong.
    """
    open_nodes, finished = [], None
    for token in TOKEN.findall(text):
        if finished is not None:
            raise ValueError(f"expected one tree; received more after it: {token[:MOST_SHOWN]!r}")
        if token == "(":
            open_nodes.append([])
        elif not open_nodes:
            raise ValueError(f"expected a tree in brackets; received {token[:MOST_SHOWN]!r}")
        elif token != ")":
            open_nodes[-1].append(token)
        else:
            node = _node(open_nodes.pop())
            if open_nodes:
                open_nodes[-1].append(node)
            else:
                finished = node
    if open_nodes:
        raise ValueError(f"expected {len(open_nodes)} more closing brackets")
    if finished is None:
        raise ValueError("expected a tree in brackets; received none")
    return finished


def _node(content):
    label = None
    if len(content) > 1 and isinstance(content[0], str):
        label, *content = content
        label = int(label) if label.isdecimal() else label
    if len(content) == 1 and isinstance(content[0], str):
        return Tree(label, word=ESCAPED.sub(lambda match: ESCAPES[match[0]], content[0]))
    words = sum(isinstance(part, str) for part in content)
    if words or not content:
        raise ValueError(
            f"expected one word, or trees, under a node; received {words} words and "
            f"{len(content) - words} trees"
        )
    return Tree(label, children=tuple(content))


def tree_over(words, shape):
    """Return the binary `Tree` over words; one word is a leaf.

        balanced: ((a b) c) ((d e) (f g)), halves of halves; of an odd number the left half has more
        left:     ((a b) c) d, branching to the left
        right:    a (b (c d)), branching to the right

    Args:
        words: list of strings, one at least.
        shape: one of `SHAPES`.

    Reference: Shi et al. 2018, section 2.1, https://aclanthology.org/D18-1492
    """
    leaves = [Tree(None, word=word) for word in words]
    if shape == "balanced":
        return _halves(leaves)
    if shape == "left":
        return functools.reduce(_joined, leaves)
    return functools.reduce(lambda right, left: _joined(left, right), reversed(leaves))


def _joined(left, right):
    return Tree(None, (left, right))


def _halves(trees):
    if len(trees) == 1:
        return trees[0]
    middle = (len(trees) + 1) // 2
    return _joined(_halves(trees[:middle]), _halves(trees[middle:]))


class Nodes:
    """A tree's nodes by index: the root first, higher nodes before lower ones.

    Args:
        tree: a `Tree`.

    Attributes:
        trees: the `Tree` of each node.
        children: the indices of each node's children.
        levels: the indices of the nodes at height 1, 2, ... over the leaves.
        written: the indices in the order of the text, the root first.
    """

    def __init__(self, tree):
        trees, children = [tree], []
        for node in trees:  # the list grows in the loop: parents precede their children
            children.append(list(range(len(trees), len(trees) + len(node.children))))
            trees.extend(node.children)
        heights = [0] * len(trees)
        for index in reversed(range(len(trees))):
            heights[index] = max((heights[child] + 1 for child in children[index]), default=0)
        order = sorted(range(len(trees)), key=lambda index: -heights[index])
        places = {before: now for now, before in enumerate(order)}
        self.trees = [trees[number] for number in order]
        self.children = [[places[child] for child in children[number]] for number in order]
        self.levels = [[] for _ in range(heights[0])]
        for number in order:
            if heights[number]:
                self.levels[heights[number] - 1].append(places[number])

    def __len__(self):
        return len(self.trees)

    @property
    def written(self):
        return self.under(0)

    def under(self, index):
        """Return the indices of a node and of all nodes below it, in the order of the text."""
        places, ahead = [], [index]
        while ahead:
            places.append(ahead.pop())
            ahead += reversed(self.children[places[-1]])
        return places


def node_arrays(rows, lookup, num_children=1):
    """Return a batch of trees as the arrays that a recursive network reads.

    Args:
        rows: list of `Nodes`.
        lookup: takes a word, returns its id, from 1 on; 0 is padding and every node without a word.
        num_children: C at least; a model of two children also reads trees of one word.

    Returns:
        A dictionary of int64 arrays, where N is the most nodes, C the most children, H the most
        levels over the leaves and W the most nodes in one of these levels (each at least 1):
        token_ids (B, N); lengths (B,), numbers of nodes; children (B, N, C), places, -1 for none;
        levels (B, H, W), the places of the nodes at height 1, 2, ..., -1 for none.
    """
    words = [[tree.word for tree in row.trees] for row in rows]
    token_ids = [[PAD if word is None else lookup(word) for word in row] for row in words]
    token_ids, lengths = pad(token_ids)
    children = pad_nested([row.children for row in rows], NO_NODE)
    missing = max(0, num_children - children.shape[-1])
    return {
        "token_ids": token_ids,
        "lengths": lengths,
        "children": np.pad(children, [(0, 0), (0, 0), (0, missing)], constant_values=NO_NODE),
        "levels": pad_nested([row.levels for row in rows], NO_NODE),
    }

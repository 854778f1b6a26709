"""Labelled trees of the Stanford Sentiment Treebank, `(3 (2 The) (4 (2 best) (2 one)))`, as arrays.

What `seqkeras.serving.text` reads, with a number as the label of every node.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from seqkeras.data.texts import lines_of, read_text
from seqkeras.serving.text.packing import pad
from seqkeras.serving.text.trees import NO_NODE, Nodes, Tree, node_arrays
from seqkeras.serving.text.trees import parse_tree as parse_any_tree


def read_trees(path: Path | str) -> list[Tree]:
    """Return the trees of a file, one a line; empty lines are passed over.

    Args:
        path: path of the file, plain or .gz.

    Returns:
        A list of `Tree`.

    Raises:
        DataError: if the file can not be read.
        ValueError: if a line is no tree; it names the line.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_trees
        >>> _ = pathlib.Path("trees.txt").write_text("(3 (2 very) (4 good))\\n(2 so)\\n")
        >>> [tree.label for tree in read_trees("trees.txt")]
        [3, 2]
    """
    trees = []
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if line.strip():
            try:
                trees.append(parse_tree(line))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
    return trees


def parse_tree(text: str) -> Tree:
    """Return the tree that a bracketed text spells.

    Args:
        text: a tree as in the Stanford Sentiment Treebank, with a number as label of every node.

    Returns:
        The `Tree`.

    Raises:
        ValueError: if the text is no tree, or a node's label is no number; it says what is wrong.

    Reference: Socher et al. 2013, https://aclanthology.org/D13-1170

    Example:
        >>> from seqkeras.data import parse_tree
        >>> tree = parse_tree("(3 (2 very) (4 good))")
        >>> tree.label, [child.word for child in tree.children]
        (3, ['very', 'good'])
    """
    tree = parse_any_tree(text)
    for node in Nodes(tree).trees:
        if not isinstance(node.label, int):
            received = "none" if node.label is None else repr(node.label)
            raise ValueError(f"expected a number as the label of every node; received {received}")
    return tree


def tree_arrays(
    trees: Sequence[Tree], ids: Mapping[str, int], unknown_id: int = 1
) -> dict[str, np.ndarray]:
    """Return a batch of trees as the arrays that `seqkeras.recurrent.TreeLSTM` reads.

    Every node has a place in its row, the root the first, higher nodes before lower ones.

    Args:
        trees: list of `Tree`.
        ids: word -> token id, from 2 on; 0 is padding and every node without a word.
        unknown_id: id of words that are not in `ids`.

    Returns:
        A dictionary of int32 arrays: those of `seqkeras.serving.text.trees.node_arrays`, and labels
        (B, N), -1 for none.

    Raises:
        ValueError: if there are no trees.

    Example:
        >>> from seqkeras.data import parse_tree, tree_arrays
        >>> arrays = tree_arrays([parse_tree("(3 (2 very) (4 good))")], {"very": 2, "good": 3})
        >>> arrays["token_ids"].tolist(), arrays["labels"].tolist(), arrays["children"].tolist()
        ([[0, 2, 3]], [[3, 2, 4]], [[[1, 2], [-1, -1], [-1, -1]]])
    """
    if not trees:
        raise ValueError("tree_arrays: needs one tree at least; received none.")
    rows = [Nodes(tree) for tree in trees]
    arrays = node_arrays(rows, lambda word: ids.get(word, unknown_id))
    arrays["labels"], _ = pad([[tree.label for tree in row.trees] for row in rows], NO_NODE)
    return {name: array.astype(np.int32) for name, array in arrays.items()}

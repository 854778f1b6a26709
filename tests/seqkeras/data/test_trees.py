import numpy as np
import pytest

from seqkeras.data.trees import Tree, parse_tree, read_trees, tree_arrays
from tests.conftest import public_data


def spelled(tree):
    """The tree as brackets again."""
    inside = tree.word or " ".join(map(spelled, tree.children))
    return f"({tree.label} {inside})"


def test_a_tree_is_read_with_its_labels_and_words():
    tree = parse_tree(r"(3 (2 -LRB-) (4 (2 and\/or) (1 best)))")
    both = Tree(4, (Tree(2, word="and/or"), Tree(1, word="best")))
    assert tree == Tree(3, (Tree(2, word="("), both))


def test_a_no_break_space_is_part_of_a_word():
    assert parse_tree("(2 8\u00a01\\/2)") == Tree(2, word="8\u00a01/2")


@pytest.mark.parametrize(
    "text, message",
    [
        ("(3 (2 a) (2 b)", "expected 1 more closing brackets"),
        ("(3 a) b", "expected one tree; received more after it: 'b'"),
        ("a", "expected a tree in brackets; received 'a'"),
        (")", r"expected a tree in brackets; received '\)'"),
        ("((2 a) (2 b))", "expected a number as the label of every node; received none"),
        ("(3 (NP a) (2 b))", "expected a number as the label of every node; received 'NP'"),
        ("(", "expected 1 more closing brackets"),
        ("()", "expected one word, or trees, under a node; received 0 words and 0 trees"),
        ("(3 a b)", "expected one word, or trees, under a node; received 2 words and 0 trees"),
        ("(3 a (2 b))", "expected one word, or trees, under a node; received 1 words and 1 trees"),
    ],
)
def test_what_is_no_tree_is_refused(text, message, write):
    with pytest.raises(ValueError, match=message):
        parse_tree(text)
    path = write("trees.txt", f"(1 (2 a) (3 b))\n\n{text}\n")
    with pytest.raises(ValueError, match=f"trees.txt, line 3: {message}"):
        read_trees(path)


def test_arrays_hold_higher_nodes_first_and_levels_from_the_leaves_up():
    leaf = Tree(1, word="a")  # one object in two places is two nodes
    trees = [Tree(4, (leaf, Tree(3, (leaf, Tree(0, word="z"))))), Tree(2, word="b")]
    arrays = tree_arrays(trees, {"a": 2, "b": 3})
    expected = {
        "token_ids": [[0, 0, 2, 2, 1], [3, 0, 0, 0, 0]],
        "lengths": [5, 1],
        "children": [[[2, 1], [3, 4], [-1, -1], [-1, -1], [-1, -1]], [[-1, -1]] * 5],
        "levels": [[[1], [0]], [[-1], [-1]]],
        "labels": [[4, 3, 1, 1, 0], [2, -1, -1, -1, -1]],
    }
    assert {name: each.tolist() for name, each in arrays.items()} == expected
    assert all(each.dtype == np.int32 for each in arrays.values())


def test_a_leaf_alone_makes_arrays_of_one():
    arrays = tree_arrays([Tree(2, word="b")], {})
    assert {name: each.tolist() for name, each in arrays.items()} == {
        "token_ids": [[1]],
        "lengths": [1],
        "children": [[[-1]]],
        "levels": [[[-1]]],
        "labels": [[2]],
    }


def test_no_trees_are_refused():
    with pytest.raises(ValueError, match="tree_arrays: needs one tree at least; received none"):
        tree_arrays([], {})


@pytest.mark.long
def test_the_treebank_is_read_whole():
    assert len(read_trees(public_data("sst-trees/train.txt"))) == 8544
    path = public_data("sst-trees/dev.txt")
    trees = read_trees(path)
    assert len(trees) == 1101
    lines = path.read_text(encoding="utf-8").splitlines()
    for tree, line in zip(trees, lines):
        if "-LRB-" not in line and "\\" not in line:
            assert "".join(spelled(tree).split()) == "".join(line.replace("-RRB-", ")").split())
    arrays = tree_arrays(trees, {})
    assert arrays["children"].shape[-1] == 2
    counts = (arrays["labels"] >= 0).sum(axis=1)
    assert np.array_equal(counts, arrays["lengths"]) and np.all(counts % 2 == 1)
    # Every node but the leaves is in one level, every node but the root is one node's child.
    assert np.array_equal((arrays["levels"] >= 0).sum(axis=(1, 2)), counts // 2)
    assert np.array_equal((arrays["children"] >= 0).sum(axis=(1, 2)), counts - 1)

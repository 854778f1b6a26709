import math

import numpy as np
import pytest

from seqkeras.serving.text.trees import SHAPES, Nodes, tree_over

SPELLED = {
    "balanced": "(((a b) c) (d e))",
    "left": "((((a b) c) d) e)",
    "right": "(a (b (c (d e))))",
}


def spelled(tree):
    return tree.word or f"({' '.join(map(spelled, tree.children))})"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_over_words_has_its_shape(shape):
    assert spelled(tree_over([*"abcde"], shape)) == SPELLED[shape]
    assert spelled(tree_over(["a"], shape)) == "a"


def halves(words):
    """NumPy divides arrays in two, of which the first has more."""
    left, right = np.array_split(words, 2)
    return f"({' '.join(half[0] if len(half) == 1 else halves(half) for half in (left, right))})"


@pytest.mark.parametrize("count", [2, 3, 6, 7, 13, 31, 100])
def test_a_balanced_tree_has_the_halves_of_numpy_and_the_least_height(count):
    words = [f"w{number}" for number in range(count)]
    tree = tree_over(words, "balanced")
    assert spelled(tree) == halves(words)
    assert len(Nodes(tree).levels) == math.ceil(math.log2(count))


def test_a_tree_to_one_side_is_as_high_as_the_text_is_long():
    for shape in ("left", "right"):
        nodes = Nodes(tree_over(["a"] * 3001, shape))
        assert (len(nodes), len(nodes.levels)) == (6001, 3000)

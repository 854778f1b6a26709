"""A binary tree LSTM over a batch of trees, forward and backward, against a loop over nodes.

    python -m benchmarks.trees [--rounds N] [--json FILE] [--quick]

The trees are the first 64 of the Stanford Sentiment Treebank where SEQKERAS_DATA names the folder
that has it, else made ones as large. Ours takes all nodes of one height, of all trees, in one step
of a `tf.function`; the rival is the way such a network is first written: one call of the cell for
every node, children before parents, in TensorFlow as it is called from Python. Both have the same
weights, and loss and gradients are compared before they are timed.
"""

import os
import sys
from pathlib import Path

import numpy as np

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

TREES, FEATURES, UNITS = 64, 300, 150
GOAL = 10
TOLERANCE = 1e-4  # of the largest value


def measure(options):
    """Check and time both ways; returns the rows."""
    import_tensorflow()
    import keras
    import tensorflow as tf

    from seqkeras.data.trees import tree_arrays
    from seqkeras.recurrent import TreeLSTM

    count, features, units = (3, 5, 7) if options.quick else (TREES, FEATURES, UNITS)
    trees, told = _trees(count)
    arrays = tree_arrays(trees, {})
    children, levels = tf.constant(arrays["children"]), tf.constant(arrays["levels"])
    real = arrays["labels"] >= 0
    rng = np.random.default_rng(0)
    sequences = tf.constant(rng.normal(size=(*real.shape, features)), tf.float32)
    keras.utils.set_random_seed(1)
    layer = TreeLSTM(units, kind="binary")
    layer.build(sequences.shape, children.shape, levels.shape)
    weights = [variable.value for variable in layer.trainable_variables]

    @tf.function(autograph=False, reduce_retracing=True)
    def ours(sequences, children, levels, real):
        with tf.GradientTape() as tape:
            outputs = layer(sequences, children, levels, node_mask=real)
            loss = tf.reduce_sum(outputs**2)
        return [loss, *tape.gradient(loss, weights)]

    def node_by_node():
        with tf.GradientTape() as tape:
            projected = tf.matmul(sequences, layer.kernel) + layer.bias
            loss = tf.add_n(
                [
                    tf.reduce_sum(h**2)
                    for row, length in enumerate(arrays["lengths"])
                    for h, _ in _states(layer, projected[row], arrays["children"][row][:length])
                ]
            )
        return [loss, *tape.gradient(loss, weights)]

    contenders = {
        "ours": lambda _: [tensor.numpy() for tensor in ours(sequences, children, levels, real)],
        "rival": lambda _: [tensor.numpy() for tensor in node_by_node()],
    }
    pairs = list(zip(*(run(0) for run in contenders.values()), strict=True))
    worst = max(np.max(np.abs(own - other)) / np.max(np.abs(other)) for own, other in pairs)
    if not worst <= TOLERANCE:
        raise ValueError(f"loss and gradients differ by {worst:.1e} of the largest value.")
    print(f"{told}, {real.sum():,} nodes: loss and gradients agree within {worst:.1e}")
    rounds = harness.rounds_of(options)
    times = harness.times_in_turn(contenders, rounds, warm_up=1)
    print(f"measured on {harness.machine(TensorFlow=tf.__version__)}; medians of {rounds} rounds")
    label = f"binary tree lstm b{count} vs node by node"
    return [harness.compare_times(label, times["ours"], times["rival"], "ms", 1000, GOAL)]


def _states(layer, projected, children):
    """Return h and c of every node of one tree, a cell's call at a time; places are in order of
    height, the highest first."""
    import tensorflow as tf

    states = [None] * len(children)
    for place in reversed(range(len(children))):
        below = [states[child] for child in children[place] if child >= 0]
        gathered = [tf.stack(tensors)[None] for tensors in zip(*below)] if below else None
        states[place] = [tensor[0] for tensor in layer.compose(projected[place][None], gathered)]
    return states


def _trees(count):
    from seqkeras.data.trees import read_trees

    path = Path(os.environ.get("SEQKERAS_DATA", "")) / "sst-trees" / "train.txt"
    if "SEQKERAS_DATA" in os.environ and path.is_file():
        return read_trees(path)[:count], f"{count} trees of the Stanford Sentiment Treebank"
    draw = np.random.default_rng(0)
    return [_made(int(draw.integers(3, 36)), draw) for _ in range(count)], f"{count} made trees"


def _made(words, draw):
    from seqkeras.data.trees import Tree

    if words == 1:
        return Tree(2, word="word")
    left = int(draw.integers(1, words))
    return Tree(2, (_made(left, draw), _made(words - left, draw)))


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("trees", __doc__.splitlines()[0])
    parser.add_argument("--rounds", type=harness.count, default=5, help="Timed rounds. Default: 5.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""A label for every node of a tree."""

import keras
from keras import ops

from seqkeras.masks import padding_mask
from seqkeras.models.recurrent_stack import values_dtype
from seqkeras.models.token_model import TokenModel
from seqkeras.recurrent import TreeLSTM, TreeRNN
from seqkeras.shapes import require_positive
from seqkeras.values import build_once

CELLS = ("tree_rnn", "child_sum", "binary")


@keras.saving.register_keras_serializable("seqkeras")
class TreeClassifier(TokenModel):
    """Words, a recursive network, and a softmax layer at every node.

        h = TreeLSTM(embedding of the words)        logits = W h + b

    Train with `keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)`, to
    which padding does not count. The root's logits are `logits[:, 0]`.

    Args:
        vocab_size: number of token ids; 0 means that a node has no word.
        embedding_dim: size of the embeddings.
        units: size of the states.
        num_classes: number of labels, V.
        cell: "binary", "child_sum" (the two `TreeLSTM`) or "tree_rnn".
        num_children: the most children of a node; "binary" takes 2.
        dropout: dropout rate of the embeddings and before the logits.

    Call arguments (one dictionary, from `seqkeras.data.trees.tree_arrays`):
        token_ids: (B, N) integers.
        lengths: (B,) integers, numbers of nodes.
        children: (B, N, C) integers.
        levels: (B, H, W) integers.
        labels: not read; `tree_arrays` makes them too.

    Returns:
        logits: (B, N, V).

    Raises:
        ValueError: if a size is not positive, the cell is unknown, an input is missing or unknown,
            or an id known already is out of range.

    Reference: Tai et al. 2015, section 4.1, https://arxiv.org/abs/1503.00075

    Example:
        >>> from seqkeras.data import parse_tree, tree_arrays
        >>> from seqkeras.models import TreeClassifier
        >>> trees = [parse_tree("(3 (2 very) (4 good))")]
        >>> model = TreeClassifier(17, embedding_dim=4, units=3, num_classes=5)
        >>> tuple(model(tree_arrays(trees, ids={"very": 2, "good": 3})).shape)  # of three nodes
        (1, 3, 5)
    """

    input_names = ["token_ids", "lengths", "children", "levels"], ["labels"]

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        units: int,
        num_classes: int,
        cell: str = "binary",
        num_children: int = 2,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sizes = {
            "vocab_size": vocab_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_classes": num_classes,
            "num_children": num_children,
        }
        require_positive(self, **self.sizes)
        if cell not in CELLS:
            raise ValueError(f"TreeClassifier: cell must be one of {CELLS}; received {cell!r}.")
        self.cell_name = cell
        policy = self.dtype_policy
        self.embedding = keras.layers.Embedding(vocab_size, embedding_dim, dtype=policy)
        if cell == "tree_rnn":
            self.encoder = TreeRNN(units, dtype=policy)
        else:
            self.encoder = TreeLSTM(units, kind=cell, dtype=policy)
        self.output_layer = keras.layers.Dense(num_classes, dtype=values_dtype(self))
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)

    @property
    def id_limits(self):
        return {"token_ids": ("vocab_size", self.sizes["vocab_size"])}

    def build(self, inputs_shape):
        embedded = (None, None, self.sizes["embedding_dim"])
        children = (None, None, self.sizes["num_children"])
        build_once(self.embedding, (None, None))
        build_once(self.encoder, embedded, children, (None, None, None))
        build_once(self.output_layer, (None, None, self.sizes["units"]))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        self.check_ids(inputs)
        token_ids = inputs["token_ids"]
        embedded = self.dropout(self.embedding(token_ids), training=training)
        words = ops.cast(token_ids > 0, embedded.dtype)[..., None]
        states = self.encoder(
            embedded * words,
            inputs["children"],
            inputs["levels"],
            node_mask=padding_mask(inputs["lengths"], ops.shape(token_ids)[1]),
        )
        return self.output_layer(self.dropout(states, training=training))

    def get_config(self):
        return {
            **super().get_config(),
            **self.sizes,
            "cell": self.cell_name,
            "dropout": self.dropout.rate,
        }

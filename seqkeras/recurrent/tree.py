"""Recursive networks: the states of a node from the states of its children, level by level.

All nodes of one height, of all trees of a batch, are one step of a loop. `seqkeras.data.trees`
makes the arrays.
"""

import keras
from keras import ops

from seqkeras.shapes import require_positive, require_sequence
from seqkeras.values import known_numbers, without_padding

KINDS = ("child_sum", "binary")


class Recursive(keras.layers.Layer):
    """Base of the recursive layers; a subclass fills `add_recurrent_weights` and `compose`.

    Args:
        units: size of each state, U.
        return_state: return all states of every node, not only h.

    Call arguments:
        features: (B, N, D), the input of every node; zeros for a node that has none.
        children: (B, N, C) integers, the places of a node's children in its row, -1 for none.
        levels: (B, H, W) integers, the places of the nodes of height 1, 2, ..., H, -1 for none. A
            node is one level higher than its highest child; leaves have height 0.
        node_mask: (B, N) booleans, True for nodes that are there, or None. Keras's mask of an
            embedding is another thing: it would hide the nodes without a word.

    Returns:
        (B, N, U), h of every node, zero where masked; with `return_state` a tuple of h and c.

    Raises:
        ValueError: if units is not a positive integer, the features, children or levels are not of
            rank 3, the children are not as many as the layer takes, or a place known already is
            beyond the row.
    """

    num_gates: int
    num_states = 1

    def __init__(self, units: int, return_state: bool = False, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, units=units)
        self.units = units
        self.return_state = return_state
        # TensorFlow's loop has no largest number of levels, which XLA would need.
        self.supports_jit = keras.backend.backend() != "tensorflow"

    def build(self, features_shape, children_shape, levels_shape):
        require_sequence(self, features=features_shape)
        for name, axes, shape in (
            ("children", "(batch, nodes, children)", children_shape),
            ("levels", "(batch, heights, nodes)", levels_shape),
        ):
            if len(shape) != 3:
                raise ValueError(
                    f"{type(self).__name__}: {name} must have shape {axes}; "
                    f"received {tuple(shape)}."
                )
        width = self.num_gates * self.units
        self.kernel = self.add_weight(name="kernel", shape=(features_shape[-1], width))
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")
        self.num_children = self.add_recurrent_weights(children_shape[-1])

    def call(self, features, children, levels, node_mask=None):
        real = True if node_mask is None else ops.expand_dims(node_mask, -1)
        self._require_places("children", children, features.shape[1], real)
        self._require_places("levels", levels, features.shape[1])
        (features,) = without_padding(node_mask, features)
        # Two places more in every row: one stands for a child that is not there, and stays zero;
        # in the other, levels put the padding that makes them equally wide.
        batch_size, length = ops.shape(features)[0], ops.shape(features)[1]
        start = (length + 2) * ops.arange(batch_size)[:, None, None]
        nobody, nowhere = start + length, start + length + 1
        children = ops.cast(self._in_all_places(children), start.dtype)
        levels = ops.cast(levels, start.dtype)
        children = ops.where(children < 0, nobody, start + children)  # places in the whole batch
        levels = ops.where(levels < 0, nowhere, start + levels)
        projected = ops.matmul(features, self.kernel) + self.bias  # (B, N, G U)
        states = [_rows(tensor) for tensor in self.compose(projected, None)]  # right for leaves
        projected, children = _rows(projected), _rows(children)

        def level(height, states):
            places = ops.reshape(ops.take(levels, height, axis=1), (-1,))  # (B W,)
            of_children = ops.take(children, places, axis=0)  # (B W, C)
            new = self.compose(
                ops.take(projected, places, axis=0),
                [ops.take(state, of_children, axis=0) for state in states],  # (B W, C, U)
            )
            return [
                ops.scatter_update(state, places[:, None], update)
                for state, update in zip(states, new, strict=True)
            ]

        if levels.shape[1] != 0:  # JAX would trace a level where there is none
            states = ops.fori_loop(0, ops.shape(levels)[1], level, states)
        states = [ops.reshape(state, (batch_size, length + 2, self.units)) for state in states]
        states = [state[:, :length] for state in states]
        if node_mask is not None:
            states = without_padding(node_mask, *states)
        return tuple(states) if self.return_state else states[0]

    def _require_places(self, name, places, length, real=True):
        """Refuse places in another row, or nowhere; padding may hold anything."""
        known, real = known_numbers(places), known_numbers(real)
        if length is None or known is None or real is None:
            return
        wrong = known[((known < -1) | (known >= length)) & real]
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__}: {name} must be places in a row, from 0 to {length - 1}, "
                f"or -1; received {wrong[0]}."
            )

    def _in_all_places(self, children):
        """Return children as wide as the weights, where all nodes of a batch have fewer."""
        num_places = children.shape[-1]
        if self.num_children is None or num_places in (None, self.num_children):
            return children
        if num_places > self.num_children:
            raise ValueError(
                f"{type(self).__name__}: children must have shape (batch, nodes, "
                f"{self.num_children}), or fewer places; received {tuple(children.shape)}."
            )
        places = [(0, 0), (0, 0), (0, self.num_children - num_places)]
        return ops.pad(ops.convert_to_tensor(children), places, constant_values=-1)


@keras.saving.register_keras_serializable("seqkeras")
class TreeRNN(Recursive):
    """Recursive network with a matrix for each place among the children.

        h = tanh(W x + U_1 h_1 + ... + U_C h_C + b)

    Notation: the paper's W is our [U_1, U_2]. Its leaves are word vectors of the states' own size;
    ours have an input x of any size, and inner nodes may have one too. C is what `children` has.

    Args:
        units: size of h, U.
        return_state: return a tuple, (h,), as `TreeLSTM` returns h and c.

    Call arguments:
        features: (B, N, D), the input of every node; zeros for a node that has none.
        children: (B, N, C) integers, the places of a node's children in its row, -1 for none.
        levels: (B, H, W) integers, the places of the nodes of height 1, 2, ..., H, -1 for none;
            leaves have height 0. `seqkeras.data.trees.tree_arrays` makes these arrays.
        node_mask: (B, N) booleans, True for nodes that are there, or None.

    Returns:
        (B, N, U), h of every node, zero where masked; with `return_state` in a tuple.

    Raises:
        ValueError: if units is not a positive integer, the features, children or levels are not of
            rank 3, there are more children than at the first call, or a place known already is
            beyond the row.

    Reference: Socher et al. 2011, section 3.2, https://dl.acm.org/doi/10.5555/3104482.3104499

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import TreeRNN
        >>> features = np.ones((1, 3, 4))
        >>> children = np.array([[[1, 2], [-1, -1], [-1, -1]]])  # node 0 has the children 1 and 2
        >>> levels = np.array([[[0]]])  # node 0 is the only one of height 1
        >>> tuple(TreeRNN(5)(features, children, levels).shape)
        (1, 3, 5)
    """

    num_gates = 1

    def add_recurrent_weights(self, num_children):
        shape = (num_children * self.units, self.units)
        self.recurrent_kernel = self.add_weight(name="recurrent_kernel", shape=shape)
        return num_children

    def compose(self, projected, children):
        """Return states of nodes, given W x + b and the states (..., C, U) of their children."""
        if children is None:
            return [ops.tanh(projected)]
        return [ops.tanh(projected + ops.matmul(_side_by_side(children[0]), self.recurrent_kernel))]


@keras.saving.register_keras_serializable("seqkeras")
class TreeLSTM(Recursive):
    """LSTM over trees, with a forget gate for every child.

    "child_sum", for any number of children in any order:

        s = h_1 + ... + h_C
        i, o = sigmoid(W x + U s + b), each with its own W, U, b;   g = tanh(W x + U s + b)
        f_k = sigmoid(W_f x + U_f h_k + b_f)

    "binary", for a left and a right child:

        i, o = sigmoid(W x + U_1 h_1 + U_2 h_2 + b);   g = tanh(W x + U_1 h_1 + U_2 h_2 + b)
        f_k = sigmoid(W_f x + U_k1 h_1 + U_k2 h_2 + b_f)

    and in both

        c = i * g + f_1 * c_1 + ... + f_C * c_C
        h = o * tanh(c)

    Notation: our g is the paper's u. Weights lie side by side, W and b in the order i, f, g, o; the
    recurrent kernel (U, 4U) in the same order, of "binary" (2U, 5U) as i, f_1, f_2, g, o.

    Args:
        units: size of h and of c, U.
        kind: "child_sum" or "binary".
        return_state: return h and c of every node, not only h.

    Call arguments:
        features: (B, N, D), the input of every node; zeros for a node that has none.
        children: (B, N, C) integers, the places of a node's children in its row, -1 for none.
        levels: (B, H, W) integers, the places of the nodes of height 1, 2, ..., H, -1 for none;
            leaves have height 0. `seqkeras.data.trees.tree_arrays` makes these arrays.
        node_mask: (B, N) booleans, True for nodes that are there, or None.

    Returns:
        (B, N, U), h of every node, zero where masked; with `return_state` a tuple of h and c.

    Raises:
        ValueError: if units is not a positive integer, the kind is unknown, the features, children
            or levels are not of rank 3, a "binary" node has more than two children, or a place
            known already is beyond the row.

    Reference: Tai et al. 2015, sections 3.1 and 3.2, https://arxiv.org/abs/1503.00075

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import TreeLSTM
        >>> features, levels = np.array([[[0.0], [1.0], [2.0]]]), np.array([[[0]]])
        >>> children = np.array([[[1, 2], [-1, -1], [-1, -1]]])  # node 0 has the children 1 and 2
        >>> layer = TreeLSTM(5)  # "child_sum", to which the order of children does not matter
        >>> exchanged = layer(features, children[..., ::-1], levels)
        >>> np.allclose(layer(features, children, levels), exchanged, atol=1e-6)
        True
    """

    num_gates = 4
    num_states = 2

    def __init__(self, units: int, kind: str = "child_sum", return_state: bool = False, **kwargs):
        super().__init__(units, return_state, **kwargs)
        if kind not in KINDS:
            raise ValueError(f"TreeLSTM: kind must be one of {KINDS}; received {kind!r}.")
        self.kind = kind

    def add_recurrent_weights(self, num_children):
        if self.kind == "binary" and num_children > 2:
            raise ValueError(
                "TreeLSTM: children must have shape (batch, nodes, 2) for the kind 'binary'; "
                f"received {num_children} children. The kind 'child_sum' takes any number."
            )
        blocks = (2, 5) if self.kind == "binary" else (1, 4)
        shape = (blocks[0] * self.units, blocks[1] * self.units)
        self.recurrent_kernel = self.add_weight(name="recurrent_kernel", shape=shape)
        return 2 if self.kind == "binary" else None

    def compose(self, projected, children):
        """Return h and c of nodes, given W x + b and h and c (..., C, U) of their children."""
        i, f, g, o = ops.split(projected, 4, axis=-1)
        if children is None:
            c = ops.sigmoid(i) * ops.tanh(g)
            return [ops.sigmoid(o) * ops.tanh(c), c]
        h_children, c_children = children
        add = self._binary if self.kind == "binary" else self._child_sum
        i, forget, g, o = add((i, f, g, o), h_children)  # forget: (..., C, U)
        c = ops.sigmoid(i) * ops.tanh(g) + ops.sum(ops.sigmoid(forget) * c_children, axis=-2)
        return [ops.sigmoid(o) * ops.tanh(c), c]

    def _child_sum(self, gates, h_children):
        i, f, g, o = gates
        U_i, U_f, U_g, U_o = ops.split(self.recurrent_kernel, 4, axis=-1)
        s = ops.sum(h_children, axis=-2)
        forget = f[..., None, :] + ops.matmul(h_children, U_f)
        return i + ops.matmul(s, U_i), forget, g + ops.matmul(s, U_g), o + ops.matmul(s, U_o)

    def _binary(self, gates, h_children):
        i, f, g, o = gates
        products = ops.matmul(_side_by_side(h_children), self.recurrent_kernel)
        h_i, h_left, h_right, h_g, h_o = ops.split(products, 5, axis=-1)
        forget = f[..., None, :] + ops.stack([h_left, h_right], axis=-2)
        return i + h_i, forget, g + h_g, o + h_o


def _rows(x):
    """Return (B, N, ·) as (B (N + 2), ·): two places more in every row, of zeros."""
    x = ops.pad(x, [(0, 0), (0, 2), (0, 0)])
    return ops.reshape(x, (-1, x.shape[-1]))


def _side_by_side(states):
    """Return (..., C, U) as (..., C U)."""
    return ops.reshape(states, (*ops.shape(states)[:-2], states.shape[-2] * states.shape[-1]))

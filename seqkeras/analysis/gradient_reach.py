"""How far a gradient reaches back in tanh, LSTM, GRU, QRNN and Transformer, before and after
training.

    g(n) = norm of the gradient of v · h(T) by e(T-n)

Notation: h(T) is what a layer gives at the last of T positions, e(t) the embedding of symbol t, v a
random direction, another one in each row; g is the geometric mean over rows. The networks learn to
name the first symbol, after T - 1 others of no use: what helps lies at the distance T - 1.

Reference: Bengio et al. 1994, https://doi.org/10.1109/72.279181; Hochreiter and Schmidhuber 1997,
https://doi.org/10.1162/neco.1997.9.8.1735
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from seqkeras.analysis.figure_style import RULE, STYLES, frame, new_figure, write_png

SYMBOLS, UNITS, BATCH = 8, 32, 64
LEARNING_RATE = 5e-3
TINY = 1e-12  # the least norm that is drawn


@dataclass(frozen=True, eq=False)
class Reach:
    """What is measured of one network.

    Attributes:
        before, after: (T,) norms, n from 0, of the network as it starts and as trained.
        right: the share of new sequences whose first symbol the trained network names.
    """

    before: np.ndarray
    after: np.ndarray
    right: float


def layers():
    """Return a dictionary: name -> a layer that maps (B, T, D) to (B, D) of the last position."""
    import keras
    from keras import ops

    from seqkeras.embeddings import SinusoidalPositions
    from seqkeras.recurrent import GRU, LSTM, QRNN, SimpleRNN
    from seqkeras.transformer import Encoder, EncoderBlock

    class Transformer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.positions = SinusoidalPositions(UNITS)
            self.encoder = Encoder(EncoderBlock(UNITS, 4, 2 * UNITS), 1)

        def build(self, shape):
            self.encoder.build(shape)

        def call(self, sequence):
            positions = self.positions(ops.arange(sequence.shape[1]))
            return self.encoder(sequence + positions)[:, -1]

    return {
        "tanh": SimpleRNN(UNITS),
        "LSTM": LSTM(UNITS),
        "GRU": GRU(UNITS),
        "QRNN": QRNN(UNITS),
        "Transformer": Transformer(),
    }


def measure(length=20, steps=800, seed=0):
    """Return a dictionary: name of a network -> `Reach`.

    Args:
        length: T.
        steps: training steps of `BATCH` sequences.
        seed: of weights and sequences.

    Raises:
        ValueError: if a sequence has fewer than two symbols, or there is no step.
    """
    import keras

    if length < 2 or steps < 1:
        raise ValueError(
            "measure: length must be at least 2, and steps at least 1; received "
            f"{length} and {steps}."
        )
    keras.utils.set_random_seed(seed)
    random = np.random.default_rng(seed)
    symbols, unseen = (sequences(rows, length, random) for rows in (BATCH * steps, BATCH))
    directions = random.normal(size=(BATCH, UNITS)).astype("float32")
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    measured = {}
    for name, layer in layers().items():
        embedding = keras.layers.Embedding(SYMBOLS, UNITS, embeddings_initializer="orthogonal")
        model = keras.Sequential([embedding, layer, keras.layers.Dense(SYMBOLS)])
        model.build((None, length))
        before = gradient_norms(embedding, layer, unseen, directions)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(LEARNING_RATE), loss)
        model.fit(symbols, symbols[:, 0], batch_size=BATCH, verbose=0, shuffle=False)
        right = np.mean(model.predict(unseen, verbose=0).argmax(axis=-1) == unseen[:, 0])
        after = gradient_norms(embedding, layer, unseen, directions)
        measured[name] = Reach(before, after, float(right))
    return measured


def sequences(rows, length, random):
    """Return (rows, length) symbols: the first is one of the first half, the others are not."""
    half = SYMBOLS // 2
    symbols = random.integers(half, SYMBOLS, size=(rows, length)).astype("int32")
    symbols[:, 0] -= half
    return symbols


def gradient_norms(embedding, layer, symbols, directions):
    """Return (T,) g(n): the geometric mean of the norms over rows.

    Args:
        embedding, layer: the parts of a network.
        symbols: (B, T) integers.
        directions: (B, U) vectors v.
    """
    import tensorflow as tf

    embedded = tf.convert_to_tensor(embedding(symbols))
    with tf.GradientTape() as tape:
        tape.watch(embedded)
        projected = tf.reduce_sum(layer(embedded) * directions)
    norms = np.linalg.norm(tape.gradient(projected, embedded), axis=-1)  # (B, T)
    return np.exp(np.log(np.maximum(norms, TINY)).mean(axis=0))[::-1]


def reach_figure(measured):
    """Return the matplotlib Figure of what `measure` returns."""
    figure = new_figure(11, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, title, field in zip(panels, ("As they start", "As trained"), ("before", "after")):
        for style, (name, reach) in zip(STYLES, measured.items()):
            norms = getattr(reach, field)
            label = f"{name}: {reach.right:.0%} right" if field == "after" else name
            axes.plot(norms, label=label, markevery=2, markersize=5, **style)
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if field == "after" else {}
        frame(axes, title, "n, steps back", "norm of ∂(v · h(T)) / ∂e(T−n)", **legend)
        axes.grid(color=RULE, linewidth=0.5)
    panels[0].get_legend().remove()
    panels[1].set_ylabel("")
    return figure


def plot_gradient_reach(path, length=20, steps=800, seed=0):
    """Draw the norms into a PNG file, replaced if it exists; see `measure`."""
    measured = measure(length, steps, seed)
    write_png(lambda: reach_figure(measured), path)

"""Table 1 of "Attention is all you need", computed: what a layer costs, and how far its ends are.

    multiply-adds   counted over the traced graph of a layer; its powers of the length n and of the
                    width d are slopes between one size and its double, where d << window << n
    sequential      products of matrices of one layer that wait for each other
    path            the most edges between the input of a position and the output of the same or a
                    later one. An edge is a layer, one on the other, or a step of a recurrent layer:
                    it leads from s to t where the gradient of the output t by the input s is not 0

The layers on each other are alike, but for dilated convolutions, whose dilation is k^level.

Reference: Vaswani et al. 2017, section 4 and table 1, https://arxiv.org/abs/1706.03762
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from seqkeras.analysis.figure_style import INK, QUIET, RULE, STYLES, frame, new_figure, write_png

KERNEL, WINDOW = 3, 8  # of a convolution; of restricted attention
WIDTH = 8  # d, of layers whose path is counted
LARGE = {"length": 8192, "width": 8, "window": 256}  # where the powers are told


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of layer.

    Args:
        paper: its complexity, sequential operations and path length in the paper.
        make: (d, window, level) -> a layer of d numbers for each position.
        is_recurrent: whether an edge is a step.
    """

    paper: tuple[str, str, str]
    make: Callable
    is_recurrent: bool = False


@dataclasses.dataclass(frozen=True)
class Row:
    """What is computed of one kind.

    Attributes:
        multiply_adds, sequential, path: length n -> number.
        power_of_length, power_of_width: powers of n and d in the multiply-adds.
    """

    multiply_adds: dict
    sequential: dict
    path: dict
    power_of_length: float
    power_of_width: float


def kinds():
    """Return a dictionary: name -> `Kind`, in the order of the paper's table."""
    import keras

    from seqkeras.attention import MultiHeadAttention, RestrictedSelfAttention
    from seqkeras.recurrent import SimpleRNN

    class SelfAttention(MultiHeadAttention):
        def build(self, shape):
            super().build(shape, shape, shape)

        def call(self, x):
            return super().call(x, x, x)

    def convolution(d, window, level, dilation=1):
        return keras.layers.Conv1D(d, KERNEL, padding="causal", dilation_rate=dilation)

    return {
        "self-attention": Kind(("n² d", "1", "1"), lambda d, window, level: SelfAttention(1, d)),
        "recurrent": Kind(
            ("n d²", "n", "n"),
            lambda d, window, level: SimpleRNN(d, return_sequences=True),
            is_recurrent=True,
        ),
        "convolution": Kind(("k n d²", "1", "n / k"), convolution),
        "dilated convolution": Kind(
            ("k n d²", "1", "log_k n"),
            lambda d, window, level: convolution(d, window, level, KERNEL**level),
        ),
        "restricted attention": Kind(
            ("r n d", "1", "n / r"),
            lambda d, window, level: RestrictedSelfAttention(1, d, window=window),
        ),
    }


def measure(lengths):
    """Return a dictionary: name of a kind -> `Row` at these lengths."""
    return {name: _row(kind, lengths) for name, kind in kinds().items()}


def _row(kind, lengths):
    counts = {n: _operations(kind, n, WIDTH, WINDOW) for n in lengths}
    n, d, window = LARGE.values()
    large, longer, wider = (
        _operations(kind, *sizes, window).multiply_adds
        for sizes in ((n, d), (2 * n, d), (n, 2 * d))
    )
    return Row(
        {n: count.multiply_adds for n, count in counts.items()},
        {n: count.sequential for n, count in counts.items()},
        {n: path_length(kind, n) for n in lengths},
        math.log2(longer / large),
        math.log2(wider / large),
    )


def _operations(kind, length, width, window):
    from seqkeras.analysis.operations import count_operations, weightless

    layer = kind.make(width, window, 0)
    with weightless():
        layer.build((None, None, width))
    return count_operations(lambda x: layer(x), x=((1, length, width), "float32"))


def path_length(kind, length):
    """Return the most edges between an input and an output at its place or later, of n places."""
    wanted = np.tri(length, dtype=bool)
    reached, hop = np.zeros_like(wanted), np.eye(length, dtype=bool)
    for level in range(length):
        edges = _edges(kind, length, level)
        hop = edges @ hop
        reached |= hop
        if reached[wanted].all():
            return level + 1
    raise ValueError(f"path_length: {length} edges join not every pair of positions.")


def _edges(kind, length, level):
    """Return (n, n) booleans: to which position (row) the next edge leads from which (column)."""
    layer = kind.make(WIDTH, WINDOW, level)
    if not kind.is_recurrent:
        return dependence(layer, length)
    by_input, by_state = step_dependence(layer)
    if level == 0:
        return np.eye(length, dtype=bool) & by_input
    return np.eye(length, k=-1, dtype=bool) & by_state


def dependence(layer, length):
    """Return (n, n) booleans: whether the output at t, a row, depends on the input at s, a column.

    The gradient of a random direction of each output is taken at a random input, in a batch of n.
    """
    random = np.random.default_rng(0)
    x = np.tile(random.normal(size=(1, length, WIDTH)), (length, 1, 1))
    direction = random.normal(size=(WIDTH, 1))

    def own(x):
        import tensorflow as tf

        return tf.linalg.diag_part((layer(x) @ direction.astype("float32"))[..., 0])

    [gradient] = _gradients(own, x)
    return gradient.any(axis=-1)


def step_dependence(layer):
    """Return whether a step of a recurrent layer depends on its input, and on the state before."""
    x, state = np.random.default_rng(0).normal(size=(2, 1, WIDTH))
    gradients = _gradients(lambda x, state: layer(x[:, None], initial_state=[state]), x, state)
    return tuple(gradient.any() for gradient in gradients)


def _gradients(function, *arrays):
    """Return the gradients of the sum of what a function returns, as arrays."""
    import tensorflow as tf

    inputs = [tf.constant(array, "float32") for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    return [gradient.numpy() for gradient in tape.gradient(result, inputs)]


def table_of(rows):
    """Return the rows of the table, the paper's entries beside those computed: lists of texts."""
    lengths = list(next(iter(rows.values())).path)[-3:]
    at = f"n = {', '.join(map(str, lengths))}"
    table = [["", "complexity", "counted", "sequential", at, "path", at]]
    for (name, row), kind in zip(rows.items(), kinds().values()):
        counted = f"n^{row.power_of_length:.2f} d^{row.power_of_width:.2f}"
        sequential, path = (
            ", ".join(str(numbers[n]) for n in lengths) for numbers in (row.sequential, row.path)
        )
        complexity, steps, way = kind.paper
        table.append([name, complexity, counted, steps, sequential, way, path])
    return table


def complexity_figure(rows):
    """Return the matplotlib Figure of `plot_layer_complexity`."""
    figure = new_figure(12, 6.4)
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 2.2))
    _draw_table(figure.add_subplot(grid[0, :]), table_of(rows))
    panels = {
        f"Multiply-adds of a layer, d = {WIDTH}": "multiply_adds",
        "Products that wait for each other": "sequential",
        "Longest path between two positions": "path",
    }
    lengths = [*next(iter(rows.values())).path]
    for column, (title, field) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[1, column])
        for style, (name, row) in zip(STYLES, rows.items()):
            numbers = getattr(row, field)
            axes.plot([*numbers], [*numbers.values()], label=name, markersize=5, **style)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.yaxis.set_major_formatter("{x:,.0f}")
        frame(axes, title, "length of the sequence n", "")
        axes.grid(color=RULE, linewidth=0.5)
        if column:
            axes.get_legend().remove()
    return figure


def _draw_table(axes, rows):
    axes.set_axis_off()
    drawn = axes.table(rows, cellLoc="left", edges="horizontal", bbox=(0, 0, 1, 1))
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(10)
    for (row, column), cell in drawn.get_celld().items():
        cell.set(edgecolor=RULE)
        is_of_paper = row and column in (1, 3, 5)
        cell.get_text().set(color=QUIET if is_of_paper else INK)


def plot_layer_complexity(path, longest=128):
    """Compute the table and draw it, and the numbers against the length, into one PNG file.

    Args:
        path: path of the file, replaced if it exists.
        longest: the longest sequence; each other one has half the length of the next, from 8 on.

    Raises:
        ValueError: if there would be fewer than three lengths.
    """
    if longest < 32:
        raise ValueError(f"plot_layer_complexity: longest must be at least 32; received {longest}.")
    rows = measure([2**power for power in range(3, longest.bit_length())])
    write_png(lambda: complexity_figure(rows), path)

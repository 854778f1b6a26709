"""A recurrent network without inputs, composed with itself: ever steeper, ever more turns.

    h(t) = tanh(U h(t-1)),    h(0) = s a,    y(t) = b · h(t)

Notation: s runs along a random line through 0 with the direction a; b is another random direction,
on which the state of 100 dimensions is projected.

Reference: Goodfellow et al. 2016, figure 10.15, https://www.deeplearningbook.org/contents/rnn.html;
Pascanu et al. 2013, https://arxiv.org/abs/1211.5063
"""

import numpy as np

from seqkeras.analysis.figure_style import RULE, STYLES, frame, new_figure, write_png

STEPS = (0, 1, 2, 4, 8)
REACH, POINTS = 20.0, 2001  # s, from minus to plus


def composed(units=100, gain=3.0, seed=2):
    """Return s, (POINTS,), and a dictionary: t -> y(t), (POINTS,).

    Args:
        units: size of the state.
        gain: the entries of U are normal numbers of gain / sqrt(units), so that its spectral radius
            is about the gain.
        seed: of U, a and b.

    Raises:
        ValueError: if there is no unit.
    """
    from seqkeras.recurrent import SimpleRNNCell

    if units < 1:
        raise ValueError(f"composed: units must be at least 1; received {units}.")
    random = np.random.default_rng(seed)
    a, b = (direction / np.linalg.norm(direction) for direction in random.normal(size=(2, units)))
    cell = SimpleRNNCell(units)
    cell.build((None, 1))
    cell.recurrent_kernel.assign(gain / np.sqrt(units) * random.normal(size=(units, units)))
    cell.bias.assign(np.zeros(units))
    s = np.linspace(-REACH, REACH, POINTS)
    nothing = np.zeros((POINTS, 1), "float32")
    states = [s[:, None] * a]
    for _ in range(STEPS[-1]):
        _, [state] = cell(nothing, [states[-1].astype("float32")])
        states.append(np.asarray(state))
    return s, {t: states[t] @ b for t in STEPS}


def turns(y):
    """Return how often a curve changes between rising and falling."""
    slopes = np.sign(np.diff(y))
    return int(np.sum(slopes[1:] * slopes[:-1] < 0))


def composition_figure(s, projections):
    """Return the matplotlib Figure of what `composed` returns."""
    figure = new_figure(8.5, 4.2)
    axes = figure.subplots()
    for style, (t, y) in zip(STYLES, projections.items()):
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        axes.plot(s, y, label=f"t = {t}: {turns(y)} turns", **line)
    highest = 1.15 * max(np.abs(y).max() for t, y in projections.items() if t > 0)
    axes.set(xlim=(-REACH, REACH), ylim=(-highest, highest))
    frame(
        axes,
        "tanh composed with itself",
        "s, place of h(0) on a random line",
        "y(t), projection of h(t)",
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    axes.grid(color=RULE, linewidth=0.5)
    return figure


def plot_composition(path, units=100, gain=3.0, seed=2):
    """Draw the projections into a PNG file, replaced if it exists; see `composed`."""
    curves = composed(units, gain, seed)
    write_png(lambda: composition_figure(*curves), path)

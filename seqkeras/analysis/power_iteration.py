"""A linear recurrence is the power method: what of h(0) lies off the largest eigenvector is lost.

    h(t) = U h(t-1) = Qᵀ Λᵗ Q h(0)
    share i of h(t):  |q_i · h(t)| / |h(t)|,  which falls as (|λ_i| / |λ_1|)^t

Notation: q_i is row i of Q, an eigenvector of the symmetric U; λ_1 is its largest eigenvalue.

Reference: Goodfellow et al. 2016, section 10.7,
https://www.deeplearningbook.org/contents/rnn.html
"""

import numpy as np

from seqkeras.analysis.figure_style import INK, QUIET, RULE, STYLES, frame, new_figure, write_png
from seqkeras.analysis.gradient_flow import linear_states

EIGENVALUES = (1.05, 0.95, 0.8, 0.6, 0.3)  # the others are under the last
STARTS = 12  # in the plane


def shares(units=16, steps=60, seed=0):
    """Return (steps + 1, units) shares of h(t), the largest eigenvalue first, and the eigenvalues.

    Args:
        units: size of the state.
        steps: number of products with U.
        seed: of Q and h(0).

    Raises:
        ValueError: if there are fewer units than eigenvalues of the figure, or no step.
    """
    if units < len(EIGENVALUES) or steps < 1:
        raise ValueError(
            f"shares: units must be at least {len(EIGENVALUES)}, and steps at least 1; received "
            f"{units} and {steps}."
        )
    random = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(random.normal(size=(units, units)))
    others = random.uniform(-EIGENVALUES[-1], EIGENVALUES[-1], size=units - len(EIGENVALUES))
    eigenvalues = np.array([*EIGENVALUES, *others])
    U = Q.T @ np.diag(eigenvalues) @ Q
    states = linear_states(U, Q.T @ np.ones(units), steps)  # equal shares at first
    return np.abs(states @ Q.T) / np.linalg.norm(states, axis=1, keepdims=True), eigenvalues


def directions(steps=60):
    """Return (steps + 1, STARTS, 2) unit vectors: h(t) in the plane of the two largest."""
    angles = 2 * np.pi * (np.arange(STARTS) + 0.5) / STARTS
    starts = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    states = [linear_states(np.diag(EIGENVALUES[:2]), start, steps) for start in starts]
    states = np.stack(states, axis=1)
    return states / np.linalg.norm(states, axis=-1, keepdims=True)


def power_figure(measured, eigenvalues, paths):
    """Return the matplotlib Figure of what `shares` and `directions` return."""
    figure = new_figure(11.5, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    for style, share, eigenvalue in zip(STYLES, measured.T, EIGENVALUES):
        markers = {"markevery": max(1, len(share) // 8), "markersize": 5}
        left.plot(share, label=f"λ = {eigenvalue:g}", **style, **markers)
    left.set_yscale("log")
    left.set_ylim(1e-8, 2)
    frame(
        left,
        f"h(t) = U h(t−1), {len(eigenvalues)} dimensions",
        "t",
        "share of an eigenvector in h(t)",
        loc="upper left",
        bbox_to_anchor=(1, 1),
        title="eigenvalue",
    )
    left.grid(color=RULE, linewidth=0.5)
    for index, path in enumerate(paths.transpose(1, 0, 2)):
        right.plot(*path.T, color=STYLES[0]["color"], linewidth=1)
        start, end = {"label": "h(0)"}, {"label": f"h({len(path) - 1})"}
        for point, marker, face, name in (
            (path[0], "o", "white", start),
            (path[-1], "D", INK, end),
        ):
            named = name if index == 0 else {}
            right.plot(*point, marker=marker, color=INK, mfc=face, linestyle="", **named)
    right.set(aspect="equal", xlim=(-1.5, 1.5), ylim=(-1.25, 1.25))
    across, up = (f"along λ = {eigenvalue:g}" for eigenvalue in EIGENVALUES[:2])
    frame(right, "Directions h(t) / |h(t)|", across, up, loc="center")
    right.axhline(0, color=QUIET, linewidth=0.5)
    return figure


def plot_power_iteration(path, units=16, steps=60, seed=0):
    """Draw shares and directions into a PNG file, replaced if it exists; see `shares`."""
    measured = shares(units, steps, seed)
    write_png(lambda: power_figure(*measured, directions(steps)), path)

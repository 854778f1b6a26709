"""The PNG of `seqkeras.analysis.gradient_flow`: one panel for each of its four questions."""

import numpy as np

from seqkeras.analysis.clipping import wall
from seqkeras.analysis.figure_style import (
    INK,
    QUIET,
    RULE,
    STYLES,
    frame,
    new_figure,
    write_png,
)

WALL_W, WALL_B = (3.6, 5.3), (-2.75, -1.65)


def plot_gradient_flow(measurements, path):
    """Draw the results of `seqkeras.analysis.gradient_flow.measure` to a PNG file.

    Args:
        measurements: the result of `measure`.
        path: the file to write, replaced if it exists; its folder must exist.
    """
    write_png(lambda: gradient_flow_figure(measurements), path)


def gradient_flow_figure(measurements):
    """Return the matplotlib Figure of `plot_gradient_flow`."""
    figure = new_figure(11, 8.6)
    panels = figure.subplots(2, 2).flat
    draw_cells(panels[0], measurements.cells)
    draw_radii(panels[1], measurements.radii)
    draw_overflows(panels[2], measurements.overflows)
    draw_descents(panels[3], measurements.descents)
    return figure


def draw_cells(axes, cells):
    for style, (name, norms) in zip(STYLES, cells.items()):
        axes.plot(norms, label=name, markevery=len(norms) // 8 or 1, markersize=4, **style)
    finish(
        axes,
        "New cells: how far a gradient reaches",
        "n, steps back",
        "norm of ∂s(T) / ∂s(T−n)",
        title="cell, s",
        loc="lower left",
    )


def draw_radii(axes, radii):
    for style, (radius, measured) in zip(STYLES, radii.items()):
        color, mark_every = style["color"], len(measured.looped) // 8 or 1
        axes.plot(measured.closed, color=color, linestyle="-", label=f"{radius:g}")
        axes.plot(
            measured.looped, color=color, linestyle="", marker=style["marker"], markersize=5,
            markevery=mark_every,
        )  # fmt: skip
        axes.plot(measured.tanh, color=color, linestyle="--")
    for label, style in (
        ("QᵀΛⁿQ", {"linestyle": "-"}),
        ("U ··· U", {"linestyle": "", "marker": "o", "markersize": 5}),
        ("with tanh", {"linestyle": "--"}),
    ):
        axes.plot([], color=QUIET, label=label, **style)
    finish(
        axes,
        "Linear: the radius to the n; tanh only takes away",
        "n, steps back",
        "norm of ∂h(T) / ∂h(T−n)",
        title="spectral radius of U",
        loc="upper left",
        ncols=2,
    )


def draw_overflows(axes, overflows):
    half = len(overflows["float64"].largest) / 2
    for style, width, (name, overflow) in zip(STYLES, (2, 3.5, 5.5), overflows.items()):
        finite = np.where(np.isfinite(overflow.largest), overflow.largest, np.nan)
        colour = style["color"]
        axes.plot(finite, label=name, color=colour, linewidth=width, zorder=3 - width / 10)
        if overflow.infinite is None:
            continue
        last = overflow.infinite - 1
        axes.plot(last, finite[last], color=INK, marker="X", markersize=8, zorder=4)
        axes.axhline(np.finfo(name).max, color=colour, linestyle="--", linewidth=1)
        side, ha, va = ((10, -6), "left", "top") if last < half else ((-10, 5), "right", "bottom")
        axes.annotate(
            f"{name}: inf at step {overflow.infinite}"
            + ("" if overflow.nan is None else f", NaN at {overflow.nan}"),
            (last, np.finfo(name).max), xytext=side, textcoords="offset points",
            ha=ha, va=va, color=INK, fontsize=9,
        )  # fmt: skip
    finish(
        axes,
        f"A growing state overflows: spectral radius {overflows['float64'].radius:g}",
        "n, steps",
        "largest |entry| of h(n) = U h(n−1)",
        loc="lower right",
    )


def draw_descents(axes, descents):
    w, b = np.linspace(*WALL_W, 341), np.linspace(*WALL_B, 221)
    error, _, _ = wall(w[None, :], b[:, None])
    shades = axes.pcolormesh(w, b, error, cmap="Greys", vmin=0, vmax=0.5, shading="gouraud")
    axes.figure.colorbar(shades, ax=axes, label="error", pad=0.02)
    for style, (name, (points, errors)) in zip(STYLES, descents.items()):
        longest = np.linalg.norm(np.diff(points, axis=0), axis=1).max()
        label = f"{name}: longest step {longest:.2g}, mean error {errors[-100:].mean():.2g}"
        axes.plot(*points.T, label=label, color=style["color"], linewidth=1)
        axes.plot(*points[-1], color=style["color"], marker="o", markersize=7)
    axes.plot(*points[0], color=INK, marker="X", markersize=8)
    axes.annotate("start", points[0], xytext=(8, 0), textcoords="offset points", va="center")
    axes.set(xlim=WALL_W, ylim=WALL_B)
    finish(axes, "Descent at a wall, clipped or not", "w", "b", loc="lower left", log=False)


def finish(axes, heading, across, up, log=True, **legend):
    """Draw the frame of a panel, its norms on a logarithmic axis."""
    frame(axes, heading, across, up, **legend)
    if log:
        axes.set_yscale("log")
        axes.set_xlim(left=0)
        axes.grid(color=RULE, linewidth=0.5)

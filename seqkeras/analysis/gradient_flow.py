"""Gradient flow back through time, as numbers and as a PNG.

    seqkeras figure gradient-flow --out gradient_flow.png --radii 0.9,1

Four questions, each with a table and a panel: how the norm of dh(T)/dh(t) falls with T - t in newly
initialized cells; how it depends on the spectral radius of U, compared with the linear recurrence
h(t) = Qᵀ Λᵗ Q h(0); after how many steps a growing one overflows; what clipping changes.

For trained cells, call `jacobian_norms` with the cell of a layer.

Notation: U is the recurrent matrix of `SimpleRNN`; the book calls it W.

Reference: Bengio et al. 1994, https://doi.org/10.1109/72.279181; Pascanu et al. 2013,
https://arxiv.org/abs/1211.5063; Goodfellow et al. 2016, section 10.7,
https://www.deeplearningbook.org/contents/rnn.html
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqkeras.analysis.clipping import clip_by_norm, clip_by_value, descend
from seqkeras.analysis.gradient_flow_figure import STYLES, plot_gradient_flow
from seqkeras.analysis.jacobians import jacobian_norms

__all__ = ["measure"]


BATCH, WIDTH = 8, 8  # number and width of the random sequences to average over
RADII = (0.9, 1.0, 1.1)
LARGEST_POWER = 300  # of ten; norms up to this are far within float64's range
SMALL_INPUTS = 0.1  # times a normal number: tanh is nearly linear, as the analysis assumes
OVERFLOW_RADIUS, OVERFLOW_STEPS = 1.5, 260
CLIPS = {
    "no clipping": lambda gradient: gradient,
    "by norm": lambda gradient: clip_by_norm(gradient, 0.1),
    "by value": lambda gradient: clip_by_value(gradient, 0.1),
}
LABELS = {"closed": "Qᵀ Λⁿ Q", "looped": "U ··· U", "tanh": "SimpleRNN"}
DESCENT = {"start": (4.8, -2.2), "learning_rate": 0.5, "steps": 300}


@dataclass(frozen=True, eq=False)
class Radius:
    """Norms of dh(T)/dh(T-n), (steps + 1,) each, for U of one spectral radius.

    closed: norms of Qᵀ Λⁿ Q, the linear recurrence.
    looped: norms of the product of n times U, the same.
    tanh: norms of a SimpleRNN with this U.
    """

    closed: np.ndarray
    looped: np.ndarray
    tanh: np.ndarray


@dataclass(frozen=True, eq=False)
class Overflow:
    """h(n) = U h(n-1) in one dtype.

    radius: radius of U.
    largest: (steps + 1,), the largest absolute entry of h(n).
    expected: the first step at which float64 exceeds the dtype's largest number; None: at none.
    infinite, nan: the first step with an infinite entry, with a NaN, or None.
    """

    radius: float
    largest: np.ndarray
    expected: int | None
    infinite: int | None
    nan: int | None


@dataclass(frozen=True, eq=False)
class Measurements:
    """The results of `measure`, to be printed and drawn.

    cells: name -> (steps + 1,) norms.
    radii: spectral radius -> `Radius`.
    overflows: name of a dtype -> `Overflow`.
    descents: name of a clipping -> points (w, b) and their errors, from `descend`.
    """

    cells: dict
    radii: dict
    overflows: dict
    descents: dict


def measure(
    units: int = 32, steps: int = 100, seed: int = 0, radii: Sequence[float] = RADII
) -> Measurements:
    """Measure all figures, with random weights and inputs.

    Args:
        units: size of each state.
        steps: number of steps back.
        seed: seed of the weights and inputs.
        radii: spectral radii of U to compare, positive numbers, at most as many as the figure has
            styles.

    Returns:
        `Measurements`, which `seqkeras.analysis.gradient_flow_figure` draws.

    Raises:
        ValueError: if units or steps are below 2, or if there is no radius, too many, one that is
            not a positive number, or one whose power `steps` overflows float64.

    Example:
        >>> from seqkeras.analysis.gradient_flow import measure
        >>> measured = measure(units=3, steps=5, radii=(0.9,))
        >>> list(measured.cells)[0], measured.radii[0.9].closed.round(3).tolist()  # 0.9 to the n
        ('SimpleRNN, h', [1.0, 0.9, 0.81, 0.729, 0.656, 0.59])
    """
    if units < 2 or steps < 2:
        raise ValueError(f"measure: units and steps must be at least 2; received {units}, {steps}.")
    require_radii(radii, steps)
    return Measurements(
        cells=cell_norms(units, steps, seed),
        radii={radius: radius_norms(radius, units, steps, seed) for radius in radii},
        overflows=overflows(OVERFLOW_RADIUS, units, OVERFLOW_STEPS, seed),
        descents={name: descend(clip, **DESCENT) for name, clip in CLIPS.items()},
    )


def require_radii(radii, steps):
    """Raise a ValueError unless these radii can be measured over `steps` and drawn."""
    if not 1 <= len(radii) <= len(STYLES):
        raise ValueError(
            f"measure: radii must be from 1 to {len(STYLES)} numbers; received {len(radii)}."
        )
    for radius in radii:
        if not (0 < radius < np.inf and steps * np.log10(radius) < LARGEST_POWER):
            raise ValueError(
                f"measure: radii must be positive numbers whose power {steps} is below "
                f"1e{LARGEST_POWER}; received {radius:g}."
            )


def cell_norms(units, steps, seed):
    """Return a dictionary: name -> (steps + 1,) norms of dh(T)/dh(T-n) or dc(T)/dc(T-n), in newly
    initialized cells.

    Chrono initialization of an LSTM of memory T: b_f = log u, u uniform in [1, T-1]; b_i = -b_f.

    Reference: Tallec and Ollivier 2018, section 2, https://arxiv.org/abs/1804.11188
    """
    from seqkeras.recurrent import QRNN, GRUCell, LSTMCell, SimpleRNNCell

    random = np.random.default_rng(seed)
    inputs = random.normal(size=(BATCH, steps, WIDTH))
    rnn, lstm, chrono, gru = (
        random_cell(cell, units, random) for cell in (SimpleRNNCell, LSTMCell, LSTMCell, GRUCell)
    )
    b_f = np.log(random.uniform(1, max(steps - 1, 2), size=units))
    chrono.bias.assign(np.concatenate([-b_f, b_f, np.zeros(2 * units)]))
    qrnn = QRNN(units)
    qrnn.build((None, None, WIDTH))
    qrnn.kernel.assign(glorot_uniform(qrnn.kernel.shape, random))
    cells = {"SimpleRNN": rnn, "GRU": gru, "QRNN": qrnn, "LSTM": lstm, "chrono LSTM": chrono}
    norms = {
        f"{name}, {state}": geometric_mean(state_norms)
        for name, cell in cells.items()
        for state, state_norms in jacobian_norms(cell, inputs).items()
    }
    del norms["chrono LSTM, h"]
    return norms


def radius_norms(radius, units, steps, seed):
    """Return the `Radius` of a symmetric U, in a SimpleRNN with small inputs."""
    from seqkeras.recurrent import SimpleRNNCell

    random = np.random.default_rng(seed)
    Q, eigenvalues = symmetric_matrix(radius, units, random)
    U = Q.T @ np.diag(eigenvalues) @ Q
    closed = [np.linalg.norm(Q.T @ np.diag(eigenvalues**n) @ Q, ord=2) for n in range(steps + 1)]
    product, looped = np.eye(units), [1.0]
    for _ in range(steps):
        product = product @ U
        looped.append(np.linalg.norm(product, ord=2))
    cell = random_cell(SimpleRNNCell, units, random)
    cell.recurrent_kernel.assign(U.T)
    inputs = SMALL_INPUTS * random.normal(size=(BATCH, steps, WIDTH))
    tanh = geometric_mean(jacobian_norms(cell, inputs)["h"])
    return Radius(np.array(closed), np.array(looped), tanh)


def overflows(radius, units, steps, seed):
    """Return a dictionary: name -> `Overflow`, of float16, float32 and float64, for a symmetric
    U."""
    random = np.random.default_rng(seed)
    Q, eigenvalues = symmetric_matrix(radius, units, random)
    U, start = Q.T @ np.diag(eigenvalues) @ Q, np.full(units, units**-0.5)
    states = {
        dtype: linear_states(U.astype(dtype), start.astype(dtype), steps)
        for dtype in ("float16", "float32", "float64")
    }
    exact = np.abs(states["float64"]).max(axis=1)
    return {
        dtype: Overflow(
            radius=radius,
            largest=np.abs(values).max(axis=1),
            expected=first(exact > np.finfo(dtype).max),
            infinite=first(np.isinf(values).any(axis=1)),
            nan=first(np.isnan(values).any(axis=1)),
        )
        for dtype, values in states.items()
    }


def linear_states(U, start, steps):
    """h(n) = U h(n-1) in the dtype of U, with overflow: (steps + 1, units)."""
    states = [start]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            states.append(U @ states[-1])
    return np.stack(states)


def symmetric_matrix(radius, units, random):
    """Q, orthogonal, and the eigenvalues, the largest of size `radius`: U = Qᵀ Λ Q."""
    Q, _ = np.linalg.qr(random.normal(size=(units, units)))
    eigenvalues = random.uniform(-1, 1, size=units)
    return Q, radius * eigenvalues / np.abs(eigenvalues).max()


def random_cell(cell_class, units, random):
    """Return a cell with Keras's default weights: Glorot uniform, orthogonal, and Keras's bias."""
    cell = cell_class(units)
    cell.build((None, WIDTH))
    gates = cell.kernel.shape[-1] // units
    cell.kernel.assign(glorot_uniform(cell.kernel.shape, random))
    orthonormal, _ = np.linalg.qr(random.normal(size=(gates * units, units)))
    cell.recurrent_kernel.assign(orthonormal.T)
    return cell


def glorot_uniform(shape, random):
    """Return weights by Glorot and Bengio 2010, equation 16; a convolution's window counts on both
    sides."""
    limit = np.sqrt(6 / (np.prod(shape[:-2]) * (shape[-2] + shape[-1])))
    return random.uniform(-limit, limit, size=shape)


def geometric_mean(norms):
    """Return the geometric mean over axis 0; zeros count as the smallest positive number."""
    return np.exp(np.mean(np.log(np.maximum(norms, np.finfo(float).tiny)), axis=0))


def first(flags):
    """Return the index of the first True, or None."""
    return int(np.argmax(flags)) if flags.any() else None


def report(measurements):
    """Yield the lines of the table."""
    steps = len(next(iter(measurements.cells.values()))) - 1
    columns = sorted({1, steps // 10, steps // 2, steps} - {0})
    head = "".join(f"{f'n = {n}':>10}" for n in columns)
    yield f"{'norm of ds(T)/ds(T-n)':28}{head}"
    for name, norms in measurements.cells.items():
        yield f"{name:28}" + "".join(f"{norms[n]:10.2g}" for n in columns)
    for radius, measured in measurements.radii.items():
        for name in ("closed", "looped", "tanh"):
            norms = getattr(measured, name)
            label = f"radius {radius:g}, {LABELS[name]}"
            yield f"{label:28}" + "".join(f"{norms[n]:10.2g}" for n in columns)
    yield ""
    yield f"{f'radius {OVERFLOW_RADIUS:g}: first step':28}{'expected':>10}{'inf':>10}{'nan':>10}"
    for dtype, overflow in measurements.overflows.items():
        steps_of = (overflow.expected, overflow.infinite, overflow.nan)
        yield f"{dtype:28}" + "".join(f"{'-' if n is None else n:>10}" for n in steps_of)
    yield ""
    yield f"{'descent at the wall':28}{'longest step':>14}{'last error':>12}{'mean error':>12}"
    for name, (points, errors) in measurements.descents.items():
        longest = np.linalg.norm(np.diff(points, axis=0), axis=1).max()
        yield f"{name:28}{longest:14.2g}{errors[-1]:12.2g}{errors[-100:].mean():12.2g}"


def draw_gradient_flow(path, units=32, steps=100, seed=0, radii=RADII):
    """Measure, print the tables, and draw the figure to a PNG file.

    Args:
        path: the file to write, replaced if it exists; its folder must exist.
        units, steps, seed, radii: as in `measure`.
    """
    measurements = measure(units, steps, seed, radii)
    print(*report(measurements), sep="\n")
    plot_gradient_flow(measurements, path)
    left = {name: f"{norms[-1]:.2g}" for name, norms in measurements.cells.items()}
    print(
        f"{steps} steps back a gradient is {left['SimpleRNN, h']} of itself in a new SimpleRNN, "
        f"{left['LSTM, c']} in an LSTM"
    )

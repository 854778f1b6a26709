"""The cell of a recurrent model: one of ours by its name, or any other, given as a pattern.

A pattern is a cell layer, ours, Keras's or the user's own, or a `QRNN`, of whatever size. Each
layer's cell is made by its config, with the units and the dtype of that layer; the pattern itself
is never built.
"""

import keras
import numpy as np
from keras import ops

from seqkeras.recurrent import GRU, LSTM, QRNN, RNN, GRUCell, LSTMCell, SimpleRNN, SimpleRNNCell
from seqkeras.recurrent.stacked import as_list, output_size_of, sizes_of
from seqkeras.values import known_numbers

NAMED = {
    "gru": (GRU, GRUCell, ["hidden"]),
    "lstm": (LSTM, LSTMCell, ["hidden", "cell"]),
    "simple_rnn": (SimpleRNN, SimpleRNNCell, ["hidden"]),
}
NAMES = sorted([*NAMED, "qrnn"])


def cell_problems(cell, name="cell"):
    """Return a list of the one reason why no model can be made of the cell, or an empty one."""
    if cell in NAMES if isinstance(cell, str) else _fits(cell):
        return []
    return [
        f"{name} must be one of {NAMES}, a QRNN, or a cell such as keras.layers.LSTMCell(1), with "
        "`units` in its config, all its states of that width, the first of them its output; none "
        f"with dropout of its own, stateful or backwards; received {cell!r}."
    ]


def is_qrnn(cell):
    """Return whether the layers of a cell are quasi-recurrent: a layer, not a cell of `RNN`."""
    return isinstance(cell, QRNN) or cell == "qrnn"


def require_cell(model, cell):
    """Raise a ValueError if no model can be made of the cell."""
    problems = cell_problems(cell)
    if problems:
        raise ValueError(f"{type(model).__name__}: {' '.join(problems)}")


def make_cell(cell, units, dtype):
    """Return a cell, one step of a layer of `units`."""
    if isinstance(cell, str):
        _, cell_class, _ = NAMED[cell]
        return cell_class(units, dtype=dtype)
    return _of_pattern(cell, units=units, dtype=dtype)


def make_layer(cell, units, dtype, name):
    """Return a layer that returns the outputs of every step, and the final states."""
    options = {"return_sequences": True, "return_state": True, "dtype": dtype, "name": name}
    if is_qrnn(cell):
        pattern = QRNN(units) if isinstance(cell, str) else cell
        return _of_pattern(pattern, units=units, **options)
    if isinstance(cell, str):
        layer_class, _, _ = NAMED[cell]
        return layer_class(units, **options)
    return RNN(make_cell(cell, units, dtype), **options)


def state_names(cell):
    """Return the names of a cell's states, the output first; of a QRNN, its memory c first."""
    if is_qrnn(cell):
        return ["memory", "history"][: 1 if not isinstance(cell, str) and cell.window == 1 else 2]
    if isinstance(cell, str):
        return NAMED[cell][2]
    return ["hidden", *(f"state_{number}" for number in range(1, len(sizes_of(cell))))]


def state_shapes(cell, units, input_dim):
    """Return the shape of each of a cell's states, without the batch, in the order of their
    names."""
    names = state_names(cell)
    if not is_qrnn(cell):
        return [(units,) for _ in names]
    window = QRNN(units).window if isinstance(cell, str) else cell.window
    return [(units,), (window - 1, input_dim)][: len(names)]


def config_of(cell):
    """Return what a model's config holds for a cell: a name, the pattern without name and dtype,
    None."""
    config = keras.saving.serialize_keras_object(cell)
    if cell is None or isinstance(cell, str):
        return config
    arguments = {
        name: value for name, value in config["config"].items() if name not in ("name", "dtype")
    }
    return {**config, "config": arguments}


def with_objects(config, *names):
    """Return a model's config, with the objects themselves where it holds their configs."""
    objects = {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names
        if isinstance(config.get(name), dict)
    }
    return {**config, **objects}


def _of_pattern(pattern, **options):
    config = {**pattern.get_config(), **options}
    if "name" not in options:
        config.pop("name", None)
    return type(pattern).from_config(config)


def _fits(pattern):
    """Return whether a cell of two units can be made of the pattern, and does what the models rely
    on."""
    if isinstance(pattern, QRNN):
        return not (pattern.dropout or pattern.stateful or pattern.go_backwards)
    is_cell = isinstance(pattern, keras.layers.Layer) and hasattr(pattern, "state_size")
    if not is_cell or isinstance(pattern, keras.layers.RNN):
        return False
    config = pattern.get_config()
    drops = config.get("dropout") or config.get("recurrent_dropout")
    if "units" not in config or drops:
        return False
    cell = make_cell(pattern, 2, "float32")
    sizes = sizes_of(cell)
    if {*sizes, output_size_of(cell)} != {2}:
        return False
    output, states = cell(ops.ones((1, 3)), [ops.full((1, 2), 0.5) for _ in sizes])
    output, hidden = known_numbers(output), known_numbers(as_list(states)[0])
    return output is None or np.allclose(output, hidden)  # a traced step has no numbers

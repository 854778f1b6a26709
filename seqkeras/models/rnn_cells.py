"""The cell of a recurrent model: one of ours by its name, or any other, given as a pattern.

A pattern is a cell layer, ours, Keras's or the user's own, of whatever size. Each layer's cell is
made by its config, with the units and the dtype of that layer; the pattern itself is never built.
"""

import keras
import numpy as np
from keras import ops

from seqkeras.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, SimpleRNN, SimpleRNNCell
from seqkeras.recurrent.stacked import as_list, output_size_of, sizes_of
from seqkeras.values import known_numbers

NAMED = {
    "gru": (GRU, GRUCell, ["hidden"]),
    "lstm": (LSTM, LSTMCell, ["hidden", "cell"]),
    "simple_rnn": (SimpleRNN, SimpleRNNCell, ["hidden"]),
}


def cell_problems(cell):
    """A list of the one reason why no model can be made of the cell, or an empty one."""
    if cell in NAMED if isinstance(cell, str) else _fits(cell):
        return []
    return [
        f"cell must be one of {sorted(NAMED)}, or a cell such as keras.layers.LSTMCell(1), with "
        "`units` in its config, all its states of that width, the first of them its output, and "
        f"no dropout of its own; received {cell!r}."
    ]


def require_cell(model, cell):
    """Raise a ValueError if no model can be made of the cell."""
    problems = cell_problems(cell)
    if problems:
        raise ValueError(f"{type(model).__name__}: {' '.join(problems)}")


def make_cell(cell, units, dtype):
    """One step of a layer of so many units."""
    if isinstance(cell, str):
        _, cell_class, _ = NAMED[cell]
        return cell_class(units, dtype=dtype)
    config = {**cell.get_config(), "units": units, "dtype": dtype}
    config.pop("name", None)
    return type(cell).from_config(config)


def make_layer(cell, units, dtype, name):
    """A layer that returns the outputs of every step, and the final states."""
    options = {"return_sequences": True, "return_state": True, "dtype": dtype, "name": name}
    if isinstance(cell, str):
        layer_class, _, _ = NAMED[cell]
        return layer_class(units, **options)
    return RNN(make_cell(cell, units, dtype), **options)


def state_names(cell):
    """The names of a cell's states, the output first."""
    if isinstance(cell, str):
        return NAMED[cell][2]
    return ["hidden", *(f"state_{place}" for place in range(1, len(sizes_of(cell))))]


def config_of(cell):
    """What a model's config holds for its cell: a name, or the pattern without name and dtype."""
    config = keras.saving.serialize_keras_object(cell)
    if isinstance(cell, str):
        return config
    kept = {
        name: value for name, value in config["config"].items() if name not in ("name", "dtype")
    }
    return {**config, "config": kept}


def with_objects(config, *names):
    """A model's config, with the objects themselves where it holds their configs."""
    objects = {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names
        if isinstance(config.get(name), dict)
    }
    return {**config, **objects}


def _fits(pattern):
    """Whether a cell of two units can be made of the pattern, and does what the models rely on."""
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

"""Recurrent layers in training, forward and backward, against the same layers of Keras.

    python -m benchmarks.layers [--only WORD] [--rounds N] [--json FILE] [--quick]
    KERAS_BACKEND=jax python -m benchmarks.layers      (needs no TensorFlow; on a GPU where JAX is)

A training step is the loss and its gradients by every weight and the sequence, of a batch that is
padded on the right and masked, three quarters of it real steps. On TensorFlow it is a `tf.function`
without XLA, traced for static lengths and for dynamic ones (batch and length None); on JAX it is
compiled, on PyTorch eager, and lengths are static. On JAX PyTorch's own layers, compiled, stand
beside ours too, if it is installed. Contenders hold the same weights, and what they compute is
compared before it is timed.
"""

import dataclasses
import functools
import sys
from collections.abc import Callable

import numpy as np

from benchmarks import harness, torch_layers, training_steps

FEATURES, UNITS = 128, 256


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer and its rivals, all of (B, T, D) sequences and a mask.

    Args:
        name: in the table.
        ours: (units) -> our layer.
        rivals: name in the table -> (units) -> the rival layer.
        goals: of the lengths, "static" or "dynamic" -> the ratio wanted; {} for none.
        features, units: sizes.
        lengths, batch_sizes: each of them with each.
        same: whether the rivals compute the same with the same weights, which is then tested.
    """

    name: str
    ours: Callable
    rivals: dict
    goals: dict
    features: int = FEATURES
    units: int = UNITS
    lengths: tuple = (128,)
    batch_sizes: tuple = (8, 32)
    same: bool = True


def _recurrent(name, bidirectional=False, in_torch=None):
    """Return the case of a recurrent layer that Keras has under the same name, and PyTorch under
    this one or the same."""
    import keras

    from seqkeras import recurrent

    def make(library, wrapper, units):
        layer = getattr(library, name)(units, return_sequences=True)
        return wrapper(layer) if bidirectional else layer

    rivals = {"keras": functools.partial(make, keras.layers, keras.layers.Bidirectional)}
    if torch_layers.is_there():
        rivals["torch.compile"] = functools.partial(
            torch_layers.Recurrent, in_torch or name, bidirectional=bidirectional
        )
    return Case(
        f"bidirectional {name.lower()}" if bidirectional else name.lower(),
        functools.partial(make, recurrent, recurrent.Bidirectional),
        rivals,
        {"static": 1.5, "dynamic": 1.0},
    )


def _qrnn(batch_size, length, goal=None):
    """Return the quasi-recurrent network beside LSTMs of its size, which compute something else."""
    import keras

    from seqkeras import recurrent

    def lstm(library, units):
        return library.LSTM(units, return_sequences=True)

    return Case(
        "qrnn",
        lambda units: recurrent.QRNN(units, window=2, return_sequences=True),
        {
            "our lstm": functools.partial(lstm, recurrent),
            "keras lstm": functools.partial(lstm, keras.layers),
        },
        {"static": goal, "dynamic": goal},
        features=256,
        lengths=(length,),
        batch_sizes=(batch_size,),
        same=False,
    )


def cases():
    """Return every case, in the order of the table; made late, for they import Keras."""
    return [
        _recurrent("LSTM"),
        _recurrent("GRU"),
        _recurrent("SimpleRNN", in_torch="RNN"),
        _recurrent("LSTM", bidirectional=True),
        _qrnn(8, 128),
        _qrnn(8, 512, goal=4),
        _qrnn(8, 2048),
        _qrnn(32, 128),
        _qrnn(32, 512, goal=1.5),
    ]


def measure(options):
    """Check and time the training steps of the cases; returns the rows."""
    training_steps.quiet_tensorflow()
    import keras

    keras.utils.set_random_seed(0)
    rows = []
    for case in cases():
        if options.only not in case.name:
            continue
        if options.quick:
            case = dataclasses.replace(
                case, features=3, units=7, lengths=case.lengths[:1], batch_sizes=(2,)
            )
        for batch_size in case.batch_sizes:
            for length in case.lengths:
                length = 5 if options.quick else length
                rows += _compare(case, batch_size, length, harness.rounds_of(options))
    if not rows:
        raise ValueError(f"no case has {options.only!r} in its name.")
    print(f"measured on {training_steps.machine()}; medians of {harness.rounds_of(options)} rounds")
    return rows


def _compare(case, batch_size, length, rounds):
    """Return the rows of one case at one size: every kind of lengths, every rival."""
    batch = training_steps.padded_batch(batch_size, length, case.features)
    layers = {"ours": case.ours(case.units)}
    layers |= {rival: make(case.units) for rival, make in case.rivals.items()}
    for layer in layers.values():
        layer.build((None, None, case.features))
    if case.same:
        _share_weights(layers)
    rows = []
    for lengths in _kinds_of_lengths():
        label = f"{case.name} b{batch_size} t{length} {lengths}"
        steps = {
            name: training_steps.training_step(
                layer, batch if lengths == "static" else None, case.features
            )
            for name, layer in layers.items()
        }
        if case.same:
            training_steps.check_agreement(label, steps, batch)
        times = training_steps.times_of(steps, batch, rounds)
        goals = dict.fromkeys(case.rivals, case.goals.get(lengths)) | {"torch.compile": None}
        rows += [
            harness.compare_times(
                f"{label} vs {rival}", times["ours"], times[rival], "ms", 1000, goals[rival]
            )
            for rival in case.rivals
        ]
    return rows


def _share_weights(layers):
    """Give all layers the first one's weights, with biases that are not zero."""
    rng = np.random.default_rng(1)
    weights = [
        weight + rng.normal(scale=0.05, size=weight.shape)
        for weight in layers["ours"].get_weights()
    ]
    for layer in layers.values():
        layer.set_weights(weights)


def _kinds_of_lengths():
    import keras

    return ("static", "dynamic") if keras.backend.backend() == "tensorflow" else ("static",)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("layers", __doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", metavar="WORD", help="Word that the names of measured cases hold."
    )
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="Timed rounds of each case. Default: 20."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""A network against the plain loop over its steps: outputs, final states and gradients."""

import keras
import numpy as np
from keras import ops

from seqkeras.composites.consistency import ALWAYS_RIGHT, who
from seqkeras.composites.network import Network

B, T, D, U = 3, 5, 2, 7
TOLERANCE = 1e-4  # of float32, relative to the largest number of a tensor
MASK = np.array([[1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0]], bool)
MASK_HELP = f"See masked_gates and masked_copies. {ALWAYS_RIGHT}"


def check_network(network: Network) -> None:
    """Compare a network with the plain loop over its steps; raise an error if they differ.

        loop: h(t), states(t) = step(W x(t) + b, U h(t-1) + c, states(t-1)), or, where step t is
            masked, 0 and states(t-1)

    Both run on the same random numbers in float32: one step, then five steps, then five steps under
    a mask with gaps, with padding, and with a row without a real step. Compared are the outputs,
    the final states, and the gradients by all inputs and weights. The gradients of the loop are
    those of automatic differentiation. On PyTorch so are the network's: check `gradients` on
    TensorFlow or JAX.

    Args:
        network: the network; of a cell it is `cell.network`.

    Returns:
        None, if all numbers agree to 1e-4 of the largest one.

    Raises:
        ValueError: if a number differs, with the argument of `Network` that is to be mended; or if
            the parts of the network do not fit together.

    Reference: Goodfellow et al. 2016, section 11.5, https://www.deeplearningbook.org

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import Network, check_network
        >>> def step(inputs, recurrent, states):
        ...     h = ops.tanh(inputs + recurrent)
        ...     return [h], [h]
        >>> check_network(Network("right", step, lambda dh, h: ([dh[0] * (1 - h[0] ** 2)], [None])))
        >>> check_network(Network("wrong", step, lambda dh, h: ([dh[0] * (1 - h[0])], [None])))
        Traceback (most recent call last):
        ...
        ValueError: Network "wrong": one step: the gradient by gate 0 of the inputs differs by ...
    """
    network.require_consistent(U, "float32")
    given = _random_inputs(network)
    one_step = {**given, "sequence": given["sequence"][:, :1]}
    # Without a mask, a sequence of one step is the step itself, which Keras differentiates.
    _compare(network, "one step", one_step, np.ones((B, 1), bool), "See {argument}.")
    _compare(network, "five steps", given, None, "See {argument}.")
    _compare(network, "five steps under a mask", given, MASK, MASK_HELP)


def _random_inputs(network):
    """Return the inputs and weights by what a message calls them."""
    num_gates, num_states = len(network.masked_gates), len(network.masked_copies)
    shapes = {
        "gates of the inputs": (num_gates * U,),
        "gates of the recurrent product": (num_gates * U,),
        **{f"old state {index}": (B, U) for index in range(num_states)},
        "sequence": (B, T, D),
        "kernel": (D, num_gates * U),
        "recurrent kernel": (U, num_gates * U),
    }
    draw = np.random.default_rng(1)
    return {
        name: draw.uniform(-0.7, 0.7, shape).astype("float32") for name, shape in shapes.items()
    }


def _compare(network, where, given, mask, help_):
    """Raise a ValueError if the network and the loop differ."""
    names, values = list(given), list(given.values())

    def run(function):
        return _with_gradients(
            lambda *values: function(network, dict(zip(names, values)), mask), values
        )

    (actual, actual_gradients), (expected, expected_gradients) = map(run, (_by_network, _by_loop))
    for index, (mine, plain) in enumerate(zip(actual, expected, strict=True)):
        name = "the outputs differ" if index == 0 else f"final state {index - 1} differs"
        _require_close(network, f"{where}: {name}", mine, plain, help_.format(argument="step"))
    for name, mine, plain in zip(names, actual_gradients, expected_gradients, strict=True):
        by_recurrent = "recurrent" in name and network.recurrent_gradients is not None
        help_now = help_.format(argument="recurrent_gradients" if by_recurrent else "gradients")
        if "recurrent" in name and not by_recurrent:
            help_now += " A step that does more than inputs + recurrent needs recurrent_gradients."
        pairs = [(name, mine, plain)]
        if name.startswith("gates"):
            gates = (np.split(gradient, len(network.masked_gates)) for gradient in (mine, plain))
            origin = name.removeprefix("gates ")
            pairs = [(f"gate {index} {origin}", *pair) for index, pair in enumerate(zip(*gates))]
        for part, mine, plain in pairs:
            told = f"{where}: the gradient by {part} differs"
            _require_close(network, told, mine, plain, help_now)


def _require_close(network, told, actual, expected, help_):
    difference = np.max(np.abs(actual - expected))
    if not difference <= TOLERANCE * max(1.0, np.max(np.abs(expected))):
        raise ValueError(
            f"{who(network)}: {told} by {difference:.2g} from the plain loop over step. {help_}"
        )


def _by_network(network, given, mask):
    biases = ops.stack([given["gates of the inputs"], given["gates of the recurrent product"]])
    weights = [given["kernel"], given["recurrent kernel"], biases]
    return network(given["sequence"], mask, _states(given), weights)


def _by_loop(network, given, mask):
    sequence, states, outputs = given["sequence"], _states(given), []
    for t in range(sequence.shape[1]):
        inputs = ops.matmul(sequence[:, t], given["kernel"]) + given["gates of the inputs"]
        recurrent = ops.matmul(states[0], given["recurrent kernel"])
        new, _ = network.step(
            inputs, recurrent + given["gates of the recurrent product"], list(states)
        )
        real = np.ones((B, 1), bool) if mask is None else mask[:, t, None]
        outputs.append(ops.where(real, new[0], ops.zeros_like(new[0])))
        states = [ops.where(real, after, before) for after, before in zip(new, states)]
    return ops.stack(outputs, axis=1), *states


def _states(given):
    return [value for name, value in given.items() if name.startswith("old state")]


def _with_gradients(function, values):
    """Return the results of a function of tensors, and the gradients of a number that depends on
    all of them, as arrays."""

    def number_and_results(values):
        results = function(*values)
        return sum(ops.sum(ops.sin(result)) for result in results), results

    gradients, results = _differentiated(number_and_results, values)
    return [
        [ops.convert_to_numpy(tensor) for tensor in tensors] for tensors in (results, gradients)
    ]


def _differentiated(function, values):
    """Return the gradients of the number that a function returns first, and what it returns
    second."""
    values = [ops.convert_to_tensor(value) for value in values]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(values)
            number, results = function(values)
        return tape.gradient(number, values, unconnected_gradients="zero"), results
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(function, has_aux=True)(values)
    import torch

    values = [value.requires_grad_() for value in values]
    number, results = function(values)
    gradients = torch.autograd.grad(number, values, allow_unused=True)
    return [
        torch.zeros_like(value) if gradient is None else gradient
        for value, gradient in zip(values, gradients, strict=True)
    ], results

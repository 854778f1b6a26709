"""A recurrent network as a plain loop over its steps, which automatic differentiation takes."""

from keras import ops


def by_the_network(network, mask, num_states):
    """Return a function: [sequence, *states, *weights] -> a number, from the network as it runs."""

    def function(values):
        sequence, *others = values
        states, weights = others[:num_states], others[num_states:]
        outputs, *final = network(sequence, mask, states, weights)
        return _number(outputs, final)

    return function


def step_by_step(network, mask, num_states):
    """Return the same function, from one step of the formula after the other."""

    def function(values):
        sequence, *others = values
        states, (kernel, recurrent_kernel, bias) = others[:num_states], others[num_states:]
        b, c = (bias[0], bias[1]) if len(bias.shape) == 2 else (bias, 0.0)
        outputs = []
        for t in range(sequence.shape[1]):
            inputs = ops.matmul(sequence[:, t], kernel) + b
            recurrent = ops.matmul(states[0], recurrent_kernel) + c
            new, _ = network.step(inputs, recurrent, states)
            output = new[0]
            if mask is not None:
                real = ops.convert_to_tensor(mask[:, t, None])
                output = ops.where(real, output, ops.zeros_like(output))
                new = [ops.where(real, one, old) for one, old in zip(new, states, strict=True)]
            outputs.append(output)
            states = new
        return _number(ops.stack(outputs, axis=1), states)

    return function


def _number(outputs, final):
    return sum(ops.sum(ops.sin(each)) for each in (outputs, *final))

"""Training steps of whole models: forward, loss, backward, clipping, optimizer."""

import numpy as np


def keras_step(model, optimizer, loss):
    """Return a function: (inputs, targets) -> loss of a step of a Keras model that is built."""
    model.compile(optimizer, loss, jit_compile=False)
    # Of several outputs there is a list, in which the sum is the first.
    return lambda inputs, targets: float(np.ravel(model.train_on_batch(inputs, targets))[0])


def torch_step(torch, model, loss, learning_rate, clip_norm):
    """Return the same of a PyTorch module of named inputs, with Adam.

    Args:
        torch: the package.
        model: (B, T) integers, by their names -> logits (B, T, V).
        loss: of (rows, V) logits and (rows,) targets.
    """
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)

    def step(inputs, targets):
        inputs = {name: torch.from_numpy(np.asarray(array)) for name, array in inputs.items()}
        value = loss(model(**inputs).flatten(0, 1), torch.from_numpy(targets).flatten())
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        return value.item()

    return step


def require_first_loss(name, loss, vocab_size):
    """Print the loss that a model begins with.

    Raises:
        ValueError: if it is far from that of a uniform distribution.
    """
    print(f"{name} begins with a loss of {loss:.3f}")
    if not 0.5 < loss / np.log(vocab_size) < 2:
        raise ValueError(f"{name} begins with a loss of {loss:.3f}, far from ln {vocab_size}.")

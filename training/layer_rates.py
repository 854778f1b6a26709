"""Learning rates of the layers of an encoder that is fine-tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

    from seqkeras.training.options import FitOptions


def rates_of_layers(model: keras.Model, options: FitOptions) -> list[Any] | None:
    """Return learning rates of single variables, in the form that `seqkeras.optimizers` takes, in
    the order of `model.trainable_variables`; None where all variables have the same.

        factor(layer) = decay^(L + 1 - layer)    first step(layer) = every (L + 1 - layer)

    Layer 0 is the embeddings, 1..L are the blocks, L + 1 is the pooler with the heads.

    Args:
        model: a `WithHeads` on a `Bert`, or another model.
        options: with `layer_decay` and `unfreeze_every`, of the `PretrainedOptions`, or without.

    Reference: Howard and Ruder 2018, sections 3.2 and 3.3, https://arxiv.org/abs/1801.06146; Clark
    et al. 2020, table 7, https://arxiv.org/abs/2003.10555
    """
    decay = getattr(options, "layer_decay", 1.0)
    every = getattr(options, "unfreeze_every", 0)
    if decay == 1 and not every:
        return None
    encoder = model.encoder
    blocks = encoder.encoder.blocks
    top = len(blocks) + 1
    pooler = [] if encoder.pooler is None else encoder.pooler.variables
    layers = {id(variable): 0 for variable in encoder.variables}
    layers |= dict.fromkeys(map(id, pooler), top)
    for number, block in enumerate(blocks, 1):
        layers |= dict.fromkeys(map(id, block.variables), number)
    below = [top - layers.get(id(variable), top) for variable in model.trainable_variables]
    return [(decay**distance, every * distance) for distance in below]

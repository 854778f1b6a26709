"""Weights that no gradient trains: `seqkeras.training` finds them by other means."""


def add_found_weight(layer, name, shape, dtype, initializer="zeros"):
    """Return a weight of a layer that is not trained and keeps its dtype in mixed precision."""
    return layer.add_weight(
        name=name,
        shape=shape,
        initializer=initializer,
        dtype=dtype,
        trainable=False,
        autocast=False,
    )

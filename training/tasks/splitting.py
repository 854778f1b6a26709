"""Which examples of a file are held out for validation."""

import numpy as np


def split(examples, options):
    """The examples without those that are held out, and those, both in their order.

    Args:
        examples: a list.
        options: have `held_out`, their share, of which one is held out at least; and a `seed`.
    """
    places = np.random.default_rng(options.seed).permutation(len(examples))
    held_out = {*places[: max(1, round(options.held_out * len(examples)))].tolist()}
    train = [example for place, example in enumerate(examples) if place not in held_out]
    return train, [examples[place] for place in sorted(held_out)]

"""Small pieces that blocks and models share: a number, the numbers of a tensor, building once."""

from keras import ops

NEVER = -1e9  # the logit of what may not be chosen: a token, or a position that is padding


def known_numbers(tensor):
    """A tensor's numbers as NumPy, or None while a graph is traced."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):  # as each backend's symbols say no
        return None


def build_once(layer, *shapes):
    """Build a layer unless it is built already, as one from a file is."""
    if not layer.built:
        layer.build(*shapes)

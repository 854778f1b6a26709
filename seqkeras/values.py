"""Numbers that models share, and those of a tensor, where they are there before a graph runs."""

from keras import ops

NEVER = -1e9  # the logit of what may not be chosen: a token, or a position that is padding


def known_numbers(tensor):
    """A tensor's numbers as NumPy, or None while a graph is traced."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):  # as each backend's symbols say no
        return None

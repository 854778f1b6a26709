"""The numbers of a tensor, where they are there before a graph runs."""

from keras import ops


def known_numbers(tensor):
    """A tensor's numbers as NumPy, or None while a graph is traced."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):  # as each backend's symbols say no
        return None

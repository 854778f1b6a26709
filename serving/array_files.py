"""Arrays in files of NumPy's, .npy and .npz, as inputs of a pipeline."""

import zipfile

import numpy as np

SUFFIXES = (".npy", ".npz")


def arrays_in(path, fields):
    """Yield (name, input) of each input in a file.

    A .npy file holds one input. A .npz file whose arrays have the names of the pipeline's fields
    holds one input of several parts; another .npz file holds one input for each array.

    Args:
        path: of the file.
        fields: the names of an input's parts.

    Raises:
        OSError: if it can not be opened.
        ValueError: if it is not a file of numbers that NumPy saved.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            yield "", loaded
            return
        with loaded:
            if set(loaded.files) == set(fields):
                yield "", {name: loaded[name] for name in fields}
                return
            for name in loaded.files:
                yield f", {name}", loaded[name]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path}: must be of numbers that NumPy saved: {reason}.") from error

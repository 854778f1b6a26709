"""TensorFlow and Keras without the lines that libraries print while they load."""

import contextlib
import os
import warnings


def import_tensorflow():
    """Import TensorFlow quietly: the C++ side logs to file descriptor 2 before any setting is read.

    A failing import still raises its Python exception.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silence():
        import tensorflow

        tensorflow.config.list_physical_devices()  # looks for a GPU, and reports that there is none
    tensorflow.get_logger().setLevel("ERROR")


def import_keras():
    """Import Keras and its backend quietly; TensorFlow only where it is the backend."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silence():
        import keras
    if keras.backend.backend() == "tensorflow":
        import_tensorflow()
    elif keras.backend.backend() == "jax":  # whose integers have 32 bits; every token id fits
        warnings.filterwarnings("ignore", "Explicitly requested dtype int64", UserWarning)


@contextlib.contextmanager
def _silence():
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)

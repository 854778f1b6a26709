"""TensorFlow without the lines that its libraries print while they load."""

import os


def import_tensorflow():
    """Import TensorFlow quietly: the C++ side logs to file descriptor 2 before any setting is read.

    A failing import still raises its Python exception.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        import tensorflow

        tensorflow.config.list_physical_devices()  # looks for a GPU, and reports that there is none
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
    tensorflow.get_logger().setLevel("ERROR")

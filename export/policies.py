"""A model that was trained in another precision, read in float32, which everything leaves in.

Mixed precision keeps its weights in float32, so these are the ones that were trained; those of
float64 are rounded. What a model's own code computes in another type, as by `ops.cast`, stays.
"""

import contextlib
import json
import shutil
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import keras

CONFIG = "config.json"  # of a .keras archive
OTHERS = ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16", "float64")


@contextlib.contextmanager
def in_float32(path):
    """An archive to load instead of one of Keras's: the same, where all is float32.

    Within this context what names no policy gets float32 too, whatever a module of the user's has
    set.

    Args:
        path: of the .keras archive.

    Yields:
        A path, and the names of the policies that were others.
    """
    with zipfile.ZipFile(path) as archive:
        config, others = _config_in_float32(archive.read(CONFIG))
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        with TemporaryDirectory() as folder:
            if others:
                path = _with_config(path, config, Path(folder) / Path(path).name)
            yield path, others
    finally:
        keras.config.set_dtype_policy(policy)


def set_float32(model):
    """Set float32 where a model's code names another policy; returns the names of these."""
    layers = [layer for layer in model._flatten_layers() if layer.dtype_policy.name in OTHERS]
    others = {layer.dtype_policy.name for layer in layers}
    for layer in layers:
        layer.dtype_policy = "float32"
    return others


def _config_in_float32(content):
    """The configuration with float32 everywhere, and the names of the policies that were others.

    Tensors between layers have types too, which tell of no policy.
    """
    found = {"name": set(), "dtype": set()}

    def rename(part, key):
        if part.get(key) in OTHERS:
            found[key].add(part[key])
            part[key] = "float32"

    def read(part):
        if "keras_history" not in part:  # a tensor's
            rename(part, "dtype")
        if part.get("class_name") == "DTypePolicy":
            rename(part["config"], "name")
        return part

    return json.loads(content, object_hook=read), found["name"] or found["dtype"]


def _with_config(path, config, copy):
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as written:
        for entry in archive.infolist():
            if entry.filename == CONFIG:
                written.writestr(CONFIG, json.dumps(config))
                continue
            with archive.open(entry) as source, written.open(entry, "w") as target:
                shutil.copyfileobj(source, target)
    return copy

"""Load a model that was trained in another precision in float32, the precision of export.

Mixed precision keeps weights in float32, so these are the trained ones; float64 weights are
rounded. Casts in a model's own code, as by `ops.cast`, stay.
"""

import contextlib
import json
from collections.abc import Iterator

import keras
from keras.src.saving import saving_lib

__all__ = ["in_float32"]

OTHERS = ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16", "float64")


@contextlib.contextmanager
def in_float32() -> Iterator[set[str]]:
    """Load models with float32 policies in this context.

    Layers without a policy get float32 too, whatever the user's module has set.

    Yields:
        A set of the names of the policies that were replaced; it fills while models are loaded.

    Example:
        >>> import keras
        >>> from seqkeras.export.policies import in_float32
        >>> dense = keras.layers.Dense(2, dtype="mixed_float16")
        >>> keras.Sequential([keras.Input((3,)), dense]).save("half.keras")
        >>> with in_float32() as replaced:
        ...     model = keras.models.load_model("half.keras")
        >>> sorted(replaced), model.layers[0].compute_dtype
        (['mixed_float16'], 'float32')
    """
    others, policy, original = set(), keras.config.dtype_policy(), saving_lib._model_from_config

    def from_config(content, *options):
        config, replaced = _config_in_float32(content)
        others.update(replaced)
        return original(json.dumps(config), *options)

    keras.config.set_dtype_policy("float32")
    saving_lib._model_from_config = from_config
    try:
        yield others
    finally:
        saving_lib._model_from_config = original
        keras.config.set_dtype_policy(policy)


def set_float32(model: keras.Model) -> set[str]:
    """Set float32 where a model's code sets another policy; returns the replaced names."""
    layers = [layer for layer in model._flatten_layers() if layer.dtype_policy.name in OTHERS]
    others = {layer.dtype_policy.name for layer in layers}
    for layer in layers:
        layer.dtype_policy = "float32"
    return others


def _config_in_float32(content):
    """Return the configuration with float32 everywhere, and the names of the policies that were
    replaced.

    The types of tensors between layers are not policies.
    """
    policies = {"name": set(), "dtype": set()}

    def rename(part, key):
        if part.get(key) in OTHERS:
            policies[key].add(part[key])
            part[key] = "float32"

    def read(part):
        if "keras_history" not in part:  # a tensor's
            rename(part, "dtype")
        if part.get("class_name") == "DTypePolicy":
            rename(part["config"], "name")
        return part

    return json.loads(content, object_hook=read), policies["name"] or policies["dtype"]

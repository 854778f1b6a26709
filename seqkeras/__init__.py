"""Sequence models from RNN to BERT as Keras layers and models."""

import importlib
import pkgutil

from seqkeras.registration import register

__all__ = [
    "analysis",
    "attention",
    "callbacks",
    "composites",
    "data",
    "decoding",
    "embeddings",
    "export",
    "learning_rates",
    "losses",
    "memory",
    "metrics",
    "models",
    "optimizers",
    "pretrained",
    "recurrent",
    "runs",
    "schedules",
    "serving",
    "streams",
    "tokenizers",
    "training",
    "transformer",
]
__version__ = "0.2.0"
_SUBMODULES = frozenset(
    module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")
)

register()


def __getattr__(name):
    """Import a subpackage such as `seqkeras.recurrent` at its first use."""
    if name in _SUBMODULES:
        return importlib.import_module(f"seqkeras.{name}")
    raise AttributeError(f"module 'seqkeras' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})

"""Every class that Keras may find in a file, known to Keras by `import seqkeras` alone.

Where Keras is imported already, the modules of these classes are imported at once; else as soon as
it is. So `import seqkeras` by itself imports neither Keras nor TensorFlow.
"""

import importlib
import importlib.abc
import importlib.util
import sys

MODULES = (  # of layers, models, losses, metrics and schedules
    "seqkeras.attention",
    "seqkeras.embeddings",
    "seqkeras.learning_rates",
    "seqkeras.losses",
    "seqkeras.metrics",
    "seqkeras.models",
    "seqkeras.recurrent",
    "seqkeras.schedules",
    "seqkeras.transformer",
)


def register():
    """Let Keras know every class, now or behind its own import."""
    if "keras" in sys.modules:
        _import_modules()
    else:
        sys.meta_path.insert(0, _BehindKeras())


def _import_modules():
    for name in MODULES:
        importlib.import_module(name)


class _BehindKeras(importlib.abc.MetaPathFinder):
    """Finds Keras as Python does, and imports our modules when its import is done."""

    def find_spec(self, name, path=None, target=None):
        if name != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def execute_and_import(module):
                execute(module)
                _import_modules()

            spec.loader.exec_module = execute_and_import
        return spec

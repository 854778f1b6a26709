"""`import seqkeras` alone registers every class that a file of Keras may name.

Where Keras is imported already, the modules of these classes are imported at once; else as soon as
it is. So `import seqkeras` by itself imports neither Keras nor TensorFlow.
"""

import importlib
import importlib.abc
import sys

MODULES = (  # of layers, models, losses, metrics, optimizers and schedules
    "seqkeras.attention",
    "seqkeras.embeddings",
    "seqkeras.learning_rates",
    "seqkeras.losses",
    "seqkeras.metrics",
    "seqkeras.models",
    "seqkeras.optimizers",
    "seqkeras.recurrent",
    "seqkeras.schedules",
    "seqkeras.transformer",
)


def register():
    """Register every class with Keras, now or after Keras's own import."""
    if "keras" in sys.modules:
        _import_modules()
    else:
        sys.meta_path.insert(0, _BehindKeras())


def _import_modules():
    for name in MODULES:
        importlib.import_module(name)


class _BehindKeras(importlib.abc.MetaPathFinder):
    """Finds Keras and our modules like Python, and imports all of ours once Keras is imported.

    Not before the outermost import is done, which may be of a module of ours that imports Keras.
    """

    def __init__(self):
        self.depth = 0

    def find_spec(self, name, path=None, target=None):
        if name != "keras" and not name.startswith("seqkeras."):
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((candidate for candidate in specs if candidate is not None), None)
        if spec is not None:
            spec.loader.exec_module = self._counted(spec.loader.exec_module)
        return spec

    def _counted(self, execute):
        def execute_and_import(module):
            self.depth += 1
            try:
                execute(module)
            finally:
                self.depth -= 1
            if self.depth == 0 and "keras" in sys.modules and self in sys.meta_path:
                sys.meta_path.remove(self)
                _import_modules()

        return execute_and_import

"""The tasks of `seqkeras train`: a file each, with its options and what it is made of.

The command line reads the options alone, so its help and its refusals need no Keras: a task imports
what needs Keras when it is made.
"""

import importlib
import pkgutil

from seqkeras.training.options import TASKS

for module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{module.name}")

__all__ = ["TASKS"]

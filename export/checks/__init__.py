"""Everything that must hold of a run before a bundle is made of it.

given.py       what `save_run` is given, before there is a run
loaded.py      a saved run, loaded again, before `save_run` returns
fit.py         the list of checks of a run and its plan, which `save_run` and export share
outputs.py     outputs of a model for made-up tokens, and for padded inputs of the run
"""


class ExportError(ValueError):
    """The bundle can not be made; the message names a way out."""

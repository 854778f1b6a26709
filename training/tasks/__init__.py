"""The tasks of `python -m training`: a file each, and one of its options.

The command line reads the options alone, so its help and its refusals need no Keras.
"""

from training.tasks.options.classification import ClassificationOptions
from training.tasks.options.dates import DatesOptions
from training.tasks.options.tagging import TaggingOptions


def _classification():
    from training.tasks.classification import Classification

    return Classification


def _dates():
    from training.tasks.dates import Dates

    return Dates


def _tagging():
    from training.tasks.tagging import Tagging

    return Tagging


TASKS = {  # name -> its options, and what imports its class
    "classification": (ClassificationOptions, _classification),
    "dates": (DatesOptions, _dates),
    "tagging": (TaggingOptions, _tagging),
}

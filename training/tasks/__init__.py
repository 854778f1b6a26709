"""The tasks of `python -m training`: a file each, and one of its options.

The command line reads the options alone, so its help and its refusals need no Keras.
"""

from training.tasks.options.classification import ClassificationOptions
from training.tasks.options.dates import DatesOptions
from training.tasks.options.forecasting import ForecastingOptions
from training.tasks.options.language_model import LanguageModelOptions
from training.tasks.options.prompt_answer import PromptAnswerOptions
from training.tasks.options.tagging import TaggingOptions
from training.tasks.options.translation import TranslationOptions


def _classification():
    from training.tasks.classification import Classification

    return Classification


def _dates():
    from training.tasks.dates import Dates

    return Dates


def _tagging():
    from training.tasks.tagging import Tagging

    return Tagging


def _language_model():
    from training.tasks.language_model import LanguageModel

    return LanguageModel


def _prompt_answer():
    from training.tasks.prompt_answer import PromptAnswer

    return PromptAnswer


def _translation():
    from training.tasks.translation import Translation

    return Translation


def _forecasting():
    from training.tasks.forecasting import Forecasting

    return Forecasting


TASKS = {  # name -> its options, and what imports its class
    "classification": (ClassificationOptions, _classification),
    "dates": (DatesOptions, _dates),
    "tagging": (TaggingOptions, _tagging),
    "language-model": (LanguageModelOptions, _language_model),
    "prompt-answer": (PromptAnswerOptions, _prompt_answer),
    "translation": (TranslationOptions, _translation),
    "forecasting": (ForecastingOptions, _forecasting),
}

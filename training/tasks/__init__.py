"""The tasks of `seqkeras train`: a file each, and one of its options.

The command line reads the options alone, so its help and its refusals need no Keras.
"""

import functools
import importlib

from seqkeras.training.tasks.options.bert_pretraining import BertPretrainingOptions
from seqkeras.training.tasks.options.bilm import BiLMOptions
from seqkeras.training.tasks.options.classification import ClassificationOptions
from seqkeras.training.tasks.options.dates import DatesOptions
from seqkeras.training.tasks.options.forecasting import ForecastingOptions
from seqkeras.training.tasks.options.language_model import LanguageModelOptions
from seqkeras.training.tasks.options.multiple_choice import MultipleChoiceOptions
from seqkeras.training.tasks.options.prompt_answer import PromptAnswerOptions
from seqkeras.training.tasks.options.question_answering import QuestionAnsweringOptions
from seqkeras.training.tasks.options.regression import RegressionOptions
from seqkeras.training.tasks.options.several import SeveralOptions
from seqkeras.training.tasks.options.tagging import TaggingOptions
from seqkeras.training.tasks.options.translation import TranslationOptions
from seqkeras.training.tasks.options.trees import TreesOptions


def _class_of(name, class_name):
    module = importlib.import_module(f"{__package__}.{name.replace('-', '_')}")
    return getattr(module, class_name)


def task_of(name, options):
    """Return the task of a name, for a training with these options."""
    if getattr(options, "teacher", None) is not None:
        return importlib.import_module(f"{__package__}.distilling").DISTILLED[name](options)
    return TASKS[name][1]()(options)


CLASSES = {  # name -> its options, and the name of its class, in a module of its own
    "bert-pretraining": (BertPretrainingOptions, "BertPretraining"),
    "bilm": (BiLMOptions, "BidirectionalLanguageModel"),
    "classification": (ClassificationOptions, "Classification"),
    "dates": (DatesOptions, "Dates"),
    "forecasting": (ForecastingOptions, "Forecasting"),
    "language-model": (LanguageModelOptions, "LanguageModel"),
    "multiple-choice": (MultipleChoiceOptions, "MultipleChoice"),
    "prompt-answer": (PromptAnswerOptions, "PromptAnswer"),
    "question-answering": (QuestionAnsweringOptions, "QuestionAnswering"),
    "regression": (RegressionOptions, "Regression"),
    "several": (SeveralOptions, "Several"),
    "tagging": (TaggingOptions, "Tagging"),
    "translation": (TranslationOptions, "Translation"),
    "trees": (TreesOptions, "Trees"),
}
TASKS = {  # name -> its options, and what imports its class
    name: (options, functools.partial(_class_of, name, class_name))
    for name, (options, class_name) in CLASSES.items()
}

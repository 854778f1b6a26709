"""The option of tasks whose models stand beside plain methods."""

from seqkeras.training.options import Options, option


class BaselineOptions(Options):
    """Whether plain methods answer the validation examples, too."""

    baselines: bool = option(
        True,
        bool,
        "Scores of plain methods on the validation examples, beside the model's: words with "
        "logistic regression, the last season, and others that the task names.",
        decides=False,
    )

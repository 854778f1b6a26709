"""The option of tasks whose scores are calibrated after training."""

from seqkeras.training.options import Options, option


class CalibrationOptions(Options):
    """Whether scores are probabilities."""

    calibrate: bool = option(
        True,
        bool,
        "Temperature of the logits, fitted after training on the validation rows: nine in ten "
        "answers with a score of 0.9 are right. No answer changes.",
    )

"""What export has against a run that a task has trained."""

import keras

from seqkeras.export.checks.loaded import refusals_of


def refusals_of_run(folder):
    """Every reason that export gives against a run of a finished training."""
    model = keras.models.load_model(folder / "model.keras", compile=False)
    reasons, _ = refusals_of(folder, model)
    return reasons

"""The files of a finished run, which export reads.

run.json         task; what the bundle's manifest will say of it; written last
model.keras      the trained model
tokenizer/       the tokenizers, by their roles: source.json and target.json, or text.json
validation.json  real inputs with their targets, on which export compares the models
validation.npz   the inputs of these that are arrays, if there are any
reference.npz    the outputs of the model as its user calls it, for the first of these
scores.json      what training measured
attention.png    attention maps of a few examples
forecast.png     past, targets and forecasts of a few examples

`seqkeras.export.save_run` writes one for any model, however it was trained.
"""

from seqkeras.runs.examples import ARRAYS, EXAMPLES, VALIDATION, are_examples, with_arrays
from seqkeras.runs.record import EVALUATION, OPTIONS, RECORD, TRAIN_AGAIN, RunError, RunRecord
from seqkeras.runs.reference import REFERENCE, Reference
from seqkeras.runs.run_files import (
    ATTENTION_MAP,
    CHECKPOINT,
    FORECASTS,
    MODEL,
    ROLES,
    SCORES,
    RunFiles,
)

__all__ = [
    "ARRAYS",
    "ATTENTION_MAP",
    "CHECKPOINT",
    "EVALUATION",
    "EXAMPLES",
    "FORECASTS",
    "MODEL",
    "OPTIONS",
    "RECORD",
    "REFERENCE",
    "ROLES",
    "Reference",
    "RunError",
    "RunFiles",
    "RunRecord",
    "SCORES",
    "TRAIN_AGAIN",
    "VALIDATION",
    "are_examples",
    "with_arrays",
]

"""Keras = SavedModel = ONNX on the same real inputs, or the export is refused.

The comparison covers outputs, and for models that generate the texts of greedy decoding and of the
run's beams. ONNX graphs run through `serving` itself. The graph that generates and the SavedModel
on strings are compared in the same way, on their own inputs.
"""

from typing import Any

from seqkeras.export.exported import Exported
from seqkeras.export.families import ExportPlan
from seqkeras.export.run import Run
from seqkeras.export.verifying.encoder_decoder import verify_encoder_decoder
from seqkeras.export.verifying.language_model import verify_language_model
from seqkeras.export.verifying.parity import ParityError as ParityError
from seqkeras.export.verifying.single_pass import verify_single_pass
from seqkeras.serving.manifest import BundleError

VERIFY = {
    "encoder-decoder": verify_encoder_decoder,
    "language model": verify_language_model,
    "single pass": verify_single_pass,
}


def verify(
    run: Run, plan: ExportPlan, exported: Exported
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Compare the models in an unfinished bundle with their Keras model.

    Returned are the figures for the manifest, and the real inputs as {name: array}, each without
    the batch's axis. A ParityError has every difference over the tolerance, or a graph's failure.
    """
    try:
        return VERIFY[plan.kind](run, plan, exported)
    except BundleError as error:
        said = "; ".join(error.reasons).rstrip(".")
        failure = f"{error.subject}: {said}" if error.subject else said
        raise ParityError(f"{failure}. Nothing was written.") from error

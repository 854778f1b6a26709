"""Keras = SavedModel = ONNX on the same real inputs, or the export is refused.

Compared are numbers, log-probabilities or what else a model gives, and where texts are generated
the strings that greedy decoding gives, and the beams that the run asks for; ONNX through `serving`
itself. The graph that generates and the SavedModel on strings are compared in the same way, on the
inputs that they take.
"""

from export.verifying.encoder_decoder import verify_encoder_decoder
from export.verifying.language_model import verify_language_model
from export.verifying.parity import ParityError
from export.verifying.single_pass import verify_single_pass
from serving.manifest import BundleError

__all__ = ["ParityError", "verify"]

VERIFY = {
    "encoder-decoder": verify_encoder_decoder,
    "language model": verify_language_model,
    "single pass": verify_single_pass,
}


def verify(run, plan, folder, manifest):
    """Compare what lies in an unfinished bundle with its Keras model.

    Args:
        run: a `Run`.
        plan: the model's `ExportPlan`.
        folder: the bundle, with a manifest.
        manifest: that manifest.

    Returns:
        The figures for the manifest, and the real inputs as arrays: a list of {name: array}, the
        inputs of one example without the batch's axis.

    Raises:
        ParityError: with every difference over the tolerance, or with what a graph fails of.
    """
    try:
        return VERIFY[plan.kind](run, plan, folder, manifest)
    except BundleError as error:
        said = "; ".join(error.reasons).rstrip(".")
        failure = f"{error.subject}: {said}" if error.subject else said
        raise ParityError(f"{failure}. Nothing was written.") from error

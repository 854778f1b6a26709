"""From a model to the pipeline of its bundle."""

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export

ONNX_ALONE = ExportOptions(saved_models=False)


def bundled(
    folder, model, pipeline, inputs, /, limits, tokenizers=None, options=ONNX_ALONE, **given
):
    """Save a run of inputs, or of examples, and export it: what `serving` opens.

    Args:
        folder: gets a folder `run` and a folder `bundle`.
        inputs: a list; of dictionaries with targets if they are examples.
        limits: a dictionary, or the source length.
        options: of `export`.
        given: further arguments of `save_run`.
    """
    examples = [
        each if isinstance(each, dict) and "target" in each else {"input": each} for each in inputs
    ]
    limits = limits if isinstance(limits, dict) else {"source_length": limits}
    save_run(folder / "run", model, pipeline, examples, limits, tokenizers, **given)
    export(folder / "run", folder / "bundle", options=options)
    return serving.load(folder / "bundle", threads=1)

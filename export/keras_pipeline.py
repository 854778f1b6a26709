"""A pipeline of `serving` that runs Keras, for checks before any graph exists."""

from seqkeras import keras_pipeline as pipelines


def keras_pipeline(folder, plan, fields, observe):
    """Return the pipeline of an `ExportPlan`; see `seqkeras.keras_pipeline.keras_pipeline`."""
    return pipelines.keras_pipeline(folder, plan.graphs, fields, observe)

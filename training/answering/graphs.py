"""A Keras model as the graph of a pipeline that answers in a single pass."""

import functools

import keras
import numpy as np
from keras import tree

from seqkeras.decoding import compiled
from seqkeras.keras_pipeline import KerasGraph
from seqkeras.models import ChainTaggingHead
from seqkeras.models.token_model import TokenModel
from seqkeras.runs import RunFiles
from seqkeras.serving.manifest import TensorSpec
from seqkeras.streams import StreamError
from seqkeras.training.streamed import step_of, streamed

FRAMES = "frames"  # the input of recordings
FRAME_BUDGET = 2**15  # frames of a batch; a longer recording is read in chunks, if that can be
FED = ("lengths", "segment_ids", "masked_positions")  # optional inputs that pipelines feed
SHAPES = {  # pipeline -> axes of the outputs of a model of ours
    "Answer": ("batch", "length"),
    "Choose": ("batch", "choices"),
    "Classify": ("batch", "labels"),
    "Embed": ("batch", "layers", "length", "dim"),
    "FillMask": ("batch", "length", "vocabulary"),
    "Tag": ("batch", "length", "labels"),
}


def graph_of(model: keras.Model, run: RunFiles) -> KerasGraph:
    """Return the `KerasGraph` of a model, compiled.

    Args:
        model: a functional model, or one of ours.
        run: its `seqkeras.runs.RunFiles`.
    """
    pipeline, settings = run.record.pipeline, run.record.settings
    names = _outputs(model, pipeline, settings)
    if isinstance(model, TokenModel):
        feeds, shape = _inputs(model), SHAPES[pipeline]
        inputs = tuple(TensorSpec(name, "int64", _axes(model, name)) for name in feeds)
        if "children" in feeds:
            shape = ("batch", "nodes", "labels")
        elif any(isinstance(head, ChainTaggingHead) for head in _heads(model).values()):
            shape = ("batch", "length", "before", "labels")
    else:
        inputs = tuple(_spec(tensor.name, tensor) for tensor in model.inputs)
        [shape] = (_spec("output", tensor).shape for tensor in model.outputs)

    @compiled
    def outputs(arrays):
        if pipeline == "Embed":
            return {names[0]: model.represent(arrays)}
        return _named(model(arrays, training=False))

    by_stream = functools.cache(lambda: _by_stream(model))

    def function(**arrays):
        is_long = FRAMES in arrays and arrays[FRAMES].shape[1] > FRAME_BUDGET
        return (is_long and by_stream() or outputs)(arrays)

    specs = tuple(TensorSpec(name, "float32", shape) for name in names)
    return KerasGraph(inputs, specs, function)


def _by_stream(model):
    """Return a function of recordings of any length, in constant memory; None for a model that can
    not stream."""
    try:
        step = compiled(step_of(model))
    except StreamError:
        return None

    def outputs(arrays):
        answers = streamed(step, arrays[FRAMES])  # (B, T, ...)
        if len(answers.shape) > len(model.outputs[0].shape):  # a summary, known at the end
            answers = answers[np.arange(len(answers)), arrays["lengths"] - 1]
        return {"output": answers}

    return outputs


def _inputs(model):
    """Return the names of the inputs that a model reads; an encoder may have no segments."""
    required, *others = model.input_names
    optional = [name for names in others for name in names if name in FED]
    return [
        name
        for name in (*required, *optional)
        if name != "segment_ids" or "segment_ids" in model.id_limits
    ]


def _axes(model, name):
    if name == "children":
        return "batch", "nodes", model.sizes["num_children"]
    return "batch", "length"


def _spec(name, tensor):
    """Return the spec of a symbolic tensor, whose open axes are the batch and a length."""
    axes = ("batch", *["length"] * (len(tensor.shape) - 1))
    shape = (axis if size is None else size for axis, size in zip(axes, tensor.shape))
    return TensorSpec(name, tensor.dtype, tuple(shape))


def _heads(model):
    return getattr(model, "heads", {})


def _outputs(model, pipeline, settings):
    """Return the names of the outputs that the pipeline reads."""
    if pipeline == "Answer":
        return settings["start"], settings["end"]
    if "output" in settings:
        return (settings["output"],)
    return tuple(_heads(model)) or ("output",)


def _named(outputs):
    """Return the outputs of a model by name, those of a head with the name of the head."""
    if not isinstance(outputs, dict):
        return {"output": outputs}
    return {"_".join(path): tensor for path, tensor in tree.flatten_with_path(outputs)}

"""The graph of a stream: frames and a state in, answers and the state after them out."""

import keras

from seqkeras.export.families.binding import structure_of
from seqkeras.export.signatures import Signature
from seqkeras.models import Forecaster
from seqkeras.runs.reference import OwnCall
from seqkeras.serving.manifest import StateEntry, TensorSpec
from seqkeras.serving.pipelines.forecast import WINDOW
from seqkeras.serving.session import FRAMES
from seqkeras.serving.streams import NEXT, PER
from seqkeras.streams import StreamError, Streaming

LENGTH = "frames"  # the symbol of the number of frames in a chunk


def stream_graph(
    model: keras.Model, graph: Signature, own_call: OwnCall | None
) -> tuple[Signature, list[StateEntry], Streaming]:
    """Return the graph of a functional model's stream, the state's `StateEntry`s, and the stream.

    A ValueError says that the model reads no frames, or can not stream.
    """
    specs = {spec.name: spec for spec in graph.inputs}
    name = next((name for name in (FRAMES, WINDOW) if name in specs), None)
    if name is None:
        raise ValueError(f"--stream: the model reads {', '.join(specs)}; frames alone stream.")
    if isinstance(specs[name].shape[1], int):
        raise ValueError(
            f"--stream: the model reads {specs[name].shape[1]} frames, no more and no less; write "
            "keras.Input((None, features))."
        )
    structure = structure_of(model)
    if isinstance(model, Forecaster):
        structure = {
            spec.name: keras.Input(_open(spec.shape), dtype=spec.dtype, name=spec.name)
            for spec in graph.inputs
        }
        model = keras.Model(structure, model(structure))
    if structure is None:
        raise ValueError(f"--stream: a {type(model).__name__} is no functional model.")
    tensors = {tuple(path): tensor for path, tensor in keras.tree.flatten_with_path(structure)}
    inputs = {name: tensors[tuple(path)] for name, path in own_call.paths.items()}
    try:
        streaming = Streaming(model, name, inputs)
    except StreamError as error:
        raise ValueError(f"--stream: {error}") from error
    entries = [
        TensorSpec(entry.name, entry.dtype, ("batch", *entry.shape)) for entry in streaming.entries
    ]
    others = [
        TensorSpec(other, specs[other].dtype, ("batch", LENGTH, *specs[other].shape[1:]))
        for other in streaming.others
    ]

    def function(**tensors):
        state = {spec.name: tensors[spec.name] for spec in entries}
        beside = {spec.name: tensors[spec.name] for spec in others}
        answers, after = streaming(tensors[name], state, beside)
        return answers | {NEXT + entry: tensor for entry, tensor in after.items()}

    return (
        Signature(
            function,
            [_with_length(specs[name], 2), *others, *entries],
            [
                *(
                    _with_length(spec, 1 if streaming.delays[spec.name] is None else 2)
                    for spec in graph.outputs
                ),
                *(TensorSpec(NEXT + spec.name, spec.dtype, spec.shape) for spec in entries),
            ],
        ),
        [StateEntry(spec.name, PER) for spec in entries],
        streaming,
    )


def _open(shape):
    return [size if isinstance(size, int) else None for size in shape[1:]]


def _with_length(spec, first):
    """Return a spec of each frame of a chunk, with the sizes of the shape from the axis `first`."""
    return TensorSpec(spec.name, spec.dtype, ("batch", LENGTH, *spec.shape[first:]))

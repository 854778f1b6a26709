"""Pipelines of `serving` that run Keras models: while a model trains, and before a graph exists."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace

import keras

from seqkeras.serving.manifest import FileEntry, GraphFile, Manifest, TensorSpec
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES


@dataclasses.dataclass(frozen=True)
class KerasGraph:
    """A graph of a bundle that is a function of Keras.

    Attributes:
        inputs, outputs: the `TensorSpec`s.
        function: takes arrays by the names of inputs, returns tensors by the names of outputs.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    function: Callable


def keras_pipeline(folder, graphs, fields, observe=None, pads_freely=False):
    """Return the pipeline of graphs that are functions of Keras.

    Args:
        folder: `Path` with the tokenizers.
        graphs: role -> what has `inputs`, `outputs` and `function` like a `KerasGraph`.
        fields: those of the `Manifest`, without graphs and files.
        observe: see `seqkeras.serving.opening.Runtime`.
        pads_freely: let a batch have any padding; a call of Keras may cost more than that.

    Raises:
        BundleError: if graphs, tokenizers or settings are not what the pipeline needs.
    """
    named = {
        role: GraphFile(f"onnx/{role}.onnx", tuple(graph.inputs), tuple(graph.outputs))
        for role, graph in graphs.items()
    }
    files = [*fields["tokenizers"].values(), *(graph.file for graph in named.values())]
    manifest = Manifest(
        graphs=named,
        saved_models={},
        files=dict.fromkeys(files, FileEntry(0, "0" * 64)),
        **fields,
    )
    runtime = _KerasRuntime(observe=observe, in_place=False, graphs=graphs, pads_freely=pads_freely)
    return PIPELINES[manifest.pipeline](folder, manifest, runtime)


@dataclasses.dataclass(frozen=True)
class _KerasRuntime(Runtime):
    """A runtime whose sessions call `graphs` in Keras instead of ONNX files."""

    graphs: dict = dataclasses.field(default_factory=dict)
    pads_freely: bool = False

    def most_padding(self, packing):
        return None if self.pads_freely else super().most_padding(packing)

    def external_files(self, model):
        return ()

    def session(self, model):
        graph = self.graphs[model.stem]

        def run(names, inputs):
            outputs = graph.function(**inputs)
            return [keras.ops.convert_to_numpy(outputs[name]) for name in names]

        return SimpleNamespace(
            run=run,
            get_providers=tuple,
            get_inputs=lambda: [_argument(spec) for spec in graph.inputs],
            get_outputs=lambda: [_argument(spec) for spec in graph.outputs],
        )


def _argument(spec):
    return SimpleNamespace(name=spec.name, type=spec.dtype, shape=spec.shape)

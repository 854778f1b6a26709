"""A pipeline of `serving` that runs Keras, for checks before any graph exists."""

import dataclasses
from types import SimpleNamespace

import keras

from seqkeras.serving.manifest import FileEntry, GraphFile, Manifest
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES


def keras_pipeline(folder, plan, fields, observe):
    """Return the pipeline of graphs that are not made yet; `observe`: see `Runtime`."""
    graphs = {
        role: GraphFile(f"onnx/{role}.onnx", tuple(signature.inputs), tuple(signature.outputs))
        for role, signature in plan.graphs.items()
    }
    files = [*fields["tokenizers"].values(), *(graph.file for graph in graphs.values())]
    manifest = Manifest(
        graphs=graphs,
        saved_models={},
        files=dict.fromkeys(files, FileEntry(0, "0" * 64)),
        **fields,
    )
    return PIPELINES[manifest.pipeline](
        folder, manifest, _KerasRuntime(observe=observe, graphs=plan.graphs)
    )


@dataclasses.dataclass(frozen=True)
class _KerasRuntime(Runtime):
    """A runtime whose sessions call the plan's `graphs` in Keras instead of ONNX files."""

    graphs: dict = dataclasses.field(default_factory=dict)

    def external_files(self, model):
        return ()

    def session(self, model):
        graph = self.graphs[model.stem]

        def run(names, inputs):
            found = graph.function(**inputs)
            return [keras.ops.convert_to_numpy(found[name]) for name in names]

        return SimpleNamespace(
            run=run,
            get_providers=tuple,
            get_inputs=lambda: [_argument(spec) for spec in graph.inputs],
            get_outputs=lambda: [_argument(spec) for spec in graph.outputs],
        )


def _argument(spec):
    return SimpleNamespace(name=spec.name, type=spec.dtype, shape=spec.shape)

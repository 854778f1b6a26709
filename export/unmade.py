"""A pipeline of `serving` before its graphs are made: Keras runs in their place."""

import dataclasses
from types import SimpleNamespace

import keras

from serving.manifest import FileEntry, GraphFile, Manifest
from serving.opening import Runtime
from serving.pipelines import PIPELINES


def unmade_pipeline(folder, plan, fields, observe):
    """The pipeline of graphs that are not there yet; `observe` is as a `Runtime` takes it."""
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
        folder, manifest, _Unmade(observe=observe, graphs=plan.graphs)
    )


@dataclasses.dataclass(frozen=True)
class _Unmade(Runtime):
    """A runtime of graphs that are not there: in their place Keras runs the plan's `graphs`."""

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

"""Bundles of tiny Keras models with random weights."""

import onnx

from export.families import parts_of
from export.onnx_files import save
from export.onnx_graphs import convert
from serving.manifest import (
    SCHEMA_VERSION,
    DecodingDefaults,
    Graph,
    Limits,
    Manifest,
    describe_files,
    write_manifest,
)


def write_bundle(folder, model, pipeline, tokenizers, **changes):
    """Write the bundle of `model` into `folder`.

    Args:
        folder: where.
        model: a built Keras model of `seqkeras.models`.
        pipeline: the name of the pipeline.
        tokenizers: role -> tokenizer.
        changes: fields of the manifest.
    """
    (folder / "onnx").mkdir(parents=True)
    (folder / "tokenizer").mkdir()
    for role, tokenizer in tokenizers.items():
        tokenizer.to_file(folder / f"tokenizer/{role}.json")
    fields = {"limits": Limits(16, 16), "decoding": DecodingDefaults()} | changes
    parts = parts_of(model, max_length=fields["limits"].target_length, decoding=fields["decoding"])
    graphs = {
        role: convert(each.function, each.inputs, each.outputs, role)
        for role, each in parts.graphs.items()
    }
    weights = save(graphs, folder / "onnx")
    fields |= {
        "schema_version": SCHEMA_VERSION,
        "name": pipeline.lower(),
        "task": "none",
        "pipeline": pipeline,
        "created": "2026-01-02T03:04:05+00:00",
        "versions": {"onnx": onnx.__version__},
        "tokenizers": {role: f"tokenizer/{role}.json" for role in tokenizers},
        "text_prefix": None,
        "graphs": {
            role: Graph(
                f"onnx/{role}.onnx",
                tuple(each.inputs),
                tuple(each.outputs),
                tuple(f"onnx/{file}" for file in weights[role]),
            )
            for role, each in parts.graphs.items()
        },
        "state": parts.state,
        "saved_models": {},
        "examples": (),
        "scores": {},
        "parity": {},
        "files": describe_files(folder),
    }
    write_manifest(folder, Manifest(**fields))
    return folder
